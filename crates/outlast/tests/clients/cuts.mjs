// The connection is lost at every event boundary and within events; every client ends with exactly the stored events.

import assert from 'node:assert/strict'
import { SOON } from './lib/adapters.mjs'
import { clients } from './lib/clients.mjs'
import { built, goesOnWhereItStopped, hydrated, noError, sameEvents, sameTranscript } from './lib/expect.mjs'
import { eachOf, linesOf, main, open, server, stored } from './lib/host.mjs'
import { HOWS, Proxy } from './lib/proxy.mjs'

/** The stored events of `tour`: `run.accepted`, `RUN_STARTED`, and what it prints, with the end. */
const EVENTS = linesOf('tour').length + 2
const boundaries = Array.from({ length: EVENTS }, (_, n) => n + 1)

const proxy = await new Proxy(server).listen()
const { send, join, adapters, close } = await clients(proxy)

/** Asserts everything about a client that has followed a run through cuts. */
async function check(name, { run, chunks, messages, errors }, mayFail = false) {
  const log = await stored(run)
  assert.equal(log.length, EVENTS, name)
  sameEvents(chunks, log, name)
  goesOnWhereItStopped(proxy.streams(name), log, name)
  sameTranscript(messages, built([{ user: messages[0], stored: log }]), name)
  sameTranscript((await hydrated(server, name)).messages, messages, `${name}, opened anew`)
  noError(errors, name, mayFail)
}

/** Whether the connection is lost between the last event and the end of the body, which is an error to the client. */
const isAfterTheLast = (n, how) => n === EVENTS && how !== 'clean'

/** A run whose client loses its connection as planned. */
async function run(adapter, name, cuts, { again, mayFail } = {}) {
  const at = proxy.through(name, cuts, again)
  const told = await send({ adapter, at, options: SOON, thread: name, text: 'play tour' })
  await check(name, told, mayFail)
}

/** The agent prints each event only when the one before has passed, and the connection is lost after each. */
async function live(adapter, how) {
  const name = `${adapter}-live-${how}`
  const at = proxy.through(name, [{ events: 1, how }], true)
  const told = send({ adapter, at, options: SOON, thread: name, text: 'play tour gated' })
  for (const n of boundaries.slice(1)) open(await proxy.passed(name, n), n - 1)
  await check(name, await told, isAfterTheLast(EVENTS, how))
  assert.ok(proxy.streams(name).length >= EVENTS, name)
}

/** Joins the run while the connection is lost as planned. */
async function rejoin(adapter, log, run, cut) {
  const name = `${adapter}-${cut.events}-${cut.bytes ?? 0}-${cut.how}`
  const told = await join({ adapter, at: proxy.through(name, [cut]), options: SOON, run, name })
  sameEvents(told.chunks, log, name)
  goesOnWhereItStopped(proxy.streams(name), log, name)
  noError(told.error ? [told.error] : [], name, cut.bytes === undefined && isAfterTheLast(cut.events, cut.how))
}

/** How long the nth event is on the wire of this adapter. */
function sizeOf(adapter, log, n) {
  const { id, chunk } = log[n - 1]
  const json = JSON.stringify(chunk)
  const text = adapter.endsWith('ServerSentEvents') ? `id: ${id}\ndata: ${json}\n\n` : `{"id":"${id}","chunk":${json}}\n`
  return Buffer.byteLength(text)
}

/** In a browser, where all is slower, each boundary is lost in one way, and fewer places within events. */
const all = process.env.CHROMIUM === undefined
const hows = (n) => (all ? HOWS : [HOWS[n % HOWS.length]])

await main(async () => {
  const ways = adapters.flatMap((adapter, n) => hows(n).map((how) => ({ adapter, how })))
  await eachOf(ways, 4, ({ adapter, how }) => live(adapter, how))
  const runs = adapters.flatMap((adapter, n) =>
    boundaries.flatMap((events) => hows(events + n).map((how) => ({ adapter, how, events }))),
  )
  await eachOf(runs, 8, ({ adapter, how, events }) =>
    run(adapter, `${adapter}-once-${events}-${how}`, [{ events, how }], { mayFail: isAfterTheLast(events, how) }),
  )
  await eachOf(ways, 8, ({ adapter, how }) =>
    run(adapter, `${adapter}-halves-${how}`, [{ events: 1, bytes: 40, how }], { again: true }),
  )

  for (const adapter of adapters) {
    const { run, errors } = await send({ adapter, at: proxy.through(adapter), thread: adapter, text: 'play tour' })
    assert.deepEqual(errors, [])
    const log = await stored(run)
    const cuts = boundaries.flatMap((events) => hows(events).map((how) => ({ events, how })))
    for (const events of boundaries.slice(0, -1)) {
      const size = sizeOf(adapter, log, events + 1)
      const every = Array.from({ length: size - 1 }, (_, byte) => byte + 1)
      const some = [1, 4, 20, 24, size >> 1, size - 3, size - 2, size - 1]
      // Of the events 5 and 6, which are text that is not of ASCII alone, every byte.
      const where = all ? ([4, 5].includes(events) ? every : some) : [some[events % some.length]]
      for (const bytes of where) cuts.push({ events, bytes, how: HOWS[cuts.length % HOWS.length] })
    }
    await eachOf(cuts, 8, (cut) => rejoin(adapter, log, run, cut))
  }
  await close()
})
