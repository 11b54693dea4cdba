// Stop, and the messages after it.

import assert from 'node:assert/strict'
import { FETCH } from './lib/adapters.mjs'
import { hydrated, sameEvents, sameTranscript, threadOf } from './lib/expect.mjs'
import { chat, join } from './lib/follow.mjs'
import { ended, main, open, server, stored } from './lib/host.mjs'

async function cancel(body) {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(`${server}/api/chat/cancel`, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal(response.status, 204)
}

const ids = (messages) => messages.map(({ id }) => id)

/** The client stops after so many lines; another client and a joiner watch. */
async function stopped(adapter, lines) {
  const thread = `${adapter}-stopped-${lines}`
  const where = { adapter, at: server, thread }
  const first = chat(where)
  const sent = first.client.sendMessage('play tour gated')
  await first.until('the run', ({ run }) => run)
  const { run } = first.seen
  open(run, lines)
  await first.until('the lines', ({ chunks }) => chunks.length === lines + 2)
  const other = chat({ ...where, persistence: true })
  other.client.attach()
  const joined = join({ adapter, at: server, run })
  await other.until('the lines', ({ chunks }) => chunks.length === lines + 2)

  first.client.stop()
  await sent
  assert.deepEqual([first.client.getIsLoading(), first.seen.errors], [false, []], thread)
  open(run, lines + 2)
  await other.until('what comes after', ({ chunks }) => chunks.length === lines + 4)
  assert.equal(first.seen.chunks.length, lines + 2, 'the client that stopped hears nothing more')
  assert.deepEqual((await hydrated(server, thread)).activeRun, { runId: run }, 'the run goes on')

  await cancel({ threadId: thread })
  await other.until('the end', (_, client) => client.getStatus() === 'error')
  assert.deepEqual(other.seen.errors.map(({ code }) => code), ['aborted'])
  const { status, error } = await ended(run)
  assert.deepEqual([status, error.code], ['aborted', 'aborted'])
  const log = await stored(run)
  assert.deepEqual([log.at(-1).chunk.type, log.at(-1).chunk.code], ['RUN_ERROR', 'aborted'])
  const told = await joined
  assert.equal(told.error, null)
  sameEvents(told.chunks, log, `${thread}, joined`)
  sameEvents(other.seen.chunks, log, `${thread}, opened`)
  sameTranscript((await hydrated(server, thread)).messages, other.client.getMessages(), thread)

  // Each sends the history as it knows it: the first has not seen the end, the other not the second turn.
  const before = (await threadOf(server, thread)).messages
  for (const [n, { client, seen, until }] of [first, other].entries()) {
    seen.chunks.length = 0
    seen.errors.length = 0
    await client.sendMessage('play brief')
    await until('the end', ({ chunks }) => chunks.at(-1)?.type === 'RUN_FINISHED')
    assert.deepEqual(seen.errors, [], thread)
    sameEvents(seen.chunks, await stored(seen.run), `${thread}, turn ${n + 2}`)
    before.push({ id: client.getMessages().at(-2).id }, { id: `${seen.run}-a1` })
    assert.deepEqual(ids((await threadOf(server, thread)).messages), ids(before), `${thread}, turn ${n + 2}`)
  }
}

/** A second message while the first is worked on: of the same client it waits, of another it is refused. */
async function busy(adapter) {
  const where = { adapter, at: server, thread: `${adapter}-busy` }
  const first = chat(where)
  const sent = [first.client.sendMessage('play tour gated')]
  await first.until('the run', ({ chunks }) => chunks.length >= 2)
  sent.push(first.client.sendMessage('play brief'))
  const other = chat(where)
  await other.client.sendMessage('play brief')
  assert.match(other.seen.errors[0].message, /409/)
  open(first.seen.run)
  await Promise.all(sent)
  await first.until('both', ({ chunks }) => chunks.filter(({ type }) => type === 'RUN_FINISHED').length === 2)
  const { messages, runs } = await threadOf(server, where.thread)
  assert.deepEqual([runs.length, messages.at(-1).content], [2, 'Done.'])
  sameTranscript((await hydrated(server, where.thread)).messages, first.client.getMessages(), where.thread)
}

/** The agent that a client names. */
async function named() {
  const { client, seen } = chat({ adapter: FETCH[0], at: server, thread: 'named', forwardedProps: { agent: 'other' } })
  await client.sendMessage('play brief')
  assert.equal((await ended(seen.run)).agent, 'other')
}

await main(async () => {
  for (const adapter of FETCH) {
    // Before anything was said, within a text, within thoughts, within a call's arguments, before its result.
    for (const lines of [0, 2, 8, 13, 15]) await stopped(adapter, lines)
    await busy(adapter)
  }
  await named()
})
