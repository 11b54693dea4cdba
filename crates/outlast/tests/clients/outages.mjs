// The server dies, or cannot be reached for a while.

import assert from 'node:assert/strict'
import { FETCH } from './lib/adapters.mjs'
import { goesOnWhereItStopped, hydrated, sameEvents, sameTranscript } from './lib/expect.mjs'
import { chat, join } from './lib/follow.mjs'
import { endServer, killServer, linesOf, main, open, server, startServer, stored } from './lib/host.mjs'
import { Proxy } from './lib/proxy.mjs'

const EVENTS = linesOf('tour').length + 2
const PATIENT = { reconnect: { delayMs: 20, maxAttempts: 1000 } }

const proxy = await new Proxy(server).listen()

/** A gated run that has printed so many lines. */
async function started(where, lines) {
  const told = chat(where)
  const sent = told.client.sendMessage('play tour gated')
  await told.until('the run', ({ run }) => run)
  open(told.seen.run, lines)
  await told.until('the lines', ({ chunks }) => chunks.length === lines + 2)
  return { ...told, sent }
}

/** What this gives, once it has called back. */
function begun(begin) {
  return new Promise((resolve) => {
    const told = begin(() => resolve({ told }))
  })
}

/** A server that ends in the middle of these runs, and another one that goes on with them. */
async function another(end, how) {
  const runs = []
  for (const adapter of FETCH) {
    for (const lines of [0, 7, 13, 25]) {
      const name = `${how}-${adapter}-${lines}`
      const where = { adapter, at: proxy.through(name), options: PATIENT, thread: name }
      const told = await started(where, lines)
      const joined = await begun((onChunk) => join({ ...where, run: told.seen.run, onChunk }))
      runs.push({ ...told, name, joined })
    }
  }
  await end()
  // Half of the agents print everything while there is no server.
  for (const { seen } of runs.filter((_, n) => n % 2 === 0)) open(seen.run)
  await startServer()
  for (const { seen } of runs) open(seen.run)
  for (const { client, seen, sent, until, name, joined } of runs) {
    await sent
    await until('the end', ({ chunks }) => chunks.length === EVENTS)
    const log = await stored(seen.run)
    sameEvents(seen.chunks, log, name)
    assert.deepEqual(seen.errors, [], name)
    const { chunks, error } = await joined.told
    sameEvents(chunks, log, `${name}, joined`)
    assert.equal(error, null, name)
    sameTranscript((await hydrated(server, name)).messages, client.getMessages(), name)
    goesOnWhereItStopped(proxy.streams(name).filter(({ method }) => method === 'POST'), log, name)
  }
}

/** A server that cannot be reached for longer than a client with default settings tries. */
async function forLong() {
  const runs = []
  for (const adapter of FETCH) {
    const where = { adapter, at: proxy.through(`long-${adapter}`), thread: `long-${adapter}` }
    runs.push({ ...where, ...(await started(where, 7)) })
  }
  proxy.down = true
  proxy.cutAll('fin')
  for (const { client, seen, sent } of runs) {
    await sent
    assert.deepEqual(seen.errors.map(({ name }) => name), ['StreamReconnectLimitError'])
    assert.equal(client.getStatus(), 'error')
  }
  proxy.down = false
  for (const { seen, ...where } of runs) await reopened(where, seen.run, 7)
}

/** Opens the thread as a page does that is mounted again, and follows the run, which has printed so many lines, to its end. */
async function reopened({ adapter, at, thread }, run, lines) {
  const { client, seen, until } = chat({ adapter, at, thread, persistence: true })
  client.attach()
  await until('the prefix', ({ chunks }) => chunks.length === lines + 2)
  open(run)
  await until('the end', ({ chunks }) => chunks.length === EVENTS && !client.getIsLoading())
  sameEvents(seen.chunks, await stored(run), thread)
  assert.deepEqual(seen.errors, [], thread)
  sameTranscript(client.getMessages(), (await hydrated(server, thread)).messages, thread)
}

/** A connection lost before the first event is an error to the client; the run is there. */
async function atOnce(adapter) {
  const thread = `once-${adapter}`
  const where = { adapter, thread, at: proxy.through(thread, [{ events: 0, how: 'fin' }]) }
  const { client, seen } = chat(where)
  await client.sendMessage('play tour gated')
  assert.deepEqual(seen.errors.map(({ name }) => name), ['StreamReadError'])
  await reopened(where, seen.run, 0)
}

await main(async () => {
  await another(killServer, 'killed')
  await another(endServer, 'ended')
  await forLong()
  for (const adapter of FETCH) await atOnce(adapter)
})
