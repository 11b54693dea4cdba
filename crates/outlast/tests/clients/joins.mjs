// Clients that come in the middle of a run: a second one, a reloaded page, another device.

import assert from 'node:assert/strict'
import { FETCH, SOON } from './lib/adapters.mjs'
import { goesOnWhereItStopped, hydrated, noError, sameEvents, sameTranscript } from './lib/expect.mjs'
import { chat, join } from './lib/follow.mjs'
import { eachOf, linesOf, main, open, runAlone, script, server, stored } from './lib/host.mjs'
import { HOWS, Proxy } from './lib/proxy.mjs'
import { events, numbers } from './lib/random.mjs'

const proxy = await new Proxy(server).listen()
globalThis.saw = (name) => proxy.seen(name)

/** A client that opens the thread as a reloaded page does. */
function opened(adapter, thread) {
  const told = chat({ adapter, at: server, thread, persistence: true })
  told.client.attach()
  return told
}

/** Starts a gated run, and waits until so many of its lines have come. */
async function started(thread, name) {
  const first = chat({ adapter: FETCH[0], at: server, thread })
  const sent = first.client.sendMessage(`play ${name} gated`)
  const lines = async (n) => {
    await first.until('the run', ({ run }) => run)
    open(first.seen.run, n)
    await first.until(`${n} lines`, ({ chunks }) => chunks.length >= n + 2)
    assert.equal(first.seen.chunks.length, n + 2)
  }
  return { ...first, sent, lines }
}

/** After every event another client comes by each adapter, as a page that opens the thread, and as a joiner that loses its
 * connection again and again. */
async function atEveryEvent() {
  const [thread, last] = ['every', linesOf('tour').length]
  const first = await started(thread, 'tour')
  const pages = []
  const joiners = []
  for (let n = 0; n < last; n++) {
    await first.lines(n)
    for (const adapter of FETCH) {
      const page = opened(adapter, thread)
      await page.until('the prefix', ({ chunks }) => chunks.length === n + 2)
      sameTranscript(page.client.getMessages(), first.client.getMessages(), `opened by ${adapter} after ${n} lines`)
      assert.equal(page.client.getIsLoading(), true, 'a page shows Stop')
      pages.push({ page, what: `${adapter} after ${n} lines` })
      const what = `joined-by-${adapter}-after-${n}-lines`
      const at = proxy.through(what, [{ events: 3, how: HOWS[n % HOWS.length] }], true)
      joiners.push({ told: join({ adapter, at, options: SOON, run: first.seen.run, name: what }), what })
    }
  }
  open(first.seen.run)
  await first.sent
  const log = await stored(first.seen.run)
  sameEvents(first.seen.chunks, log, 'the first client')
  for (const { page, what } of pages) {
    await page.until('the end', (_, client) => !client.getIsLoading())
    sameEvents(page.seen.chunks, log, what)
    sameTranscript(page.client.getMessages(), first.client.getMessages(), what)
    assert.deepEqual([page.seen.errors, page.client.getStatus()], [[], 'ready'], what)
  }
  for (const { told, what } of joiners) {
    const { chunks, error } = await told
    sameEvents(chunks, log, what)
    goesOnWhereItStopped(proxy.streams(what), log, what)
    noError(error ? [error] : [], what, true)
  }
  const { messages, activeRun } = await hydrated(server, thread)
  sameTranscript(messages, first.client.getMessages(), 'opened after the end')
  assert.equal(activeRun, null)
}

/** Whether the client can build the run anew, opened after these lines: it loses what comes after the first thoughts where
 * the run begins with them, unless the first text is complete by then. */
function canBuildAnew(lines, opened) {
  const speaks = ({ type }) => /^(REASONING_MESSAGE_CONTENT|TEXT_MESSAGE_START|TOOL_CALL_START)$/.test(type)
  if (lines.find(speaks)?.type !== 'REASONING_MESSAGE_CONTENT') return true
  const complete = lines.findIndex(({ type }) => type === 'TEXT_MESSAGE_END')
  return complete >= 0 && complete < opened
}

/** A run that is opened after so many of its lines. */
async function openedAfter(at, name, lines) {
  const thread = `${name}-opened-after-${at}`
  const first = await started(thread, name)
  await first.lines(at)
  const page = opened(FETCH[at % FETCH.length], thread)
  await page.until('the prefix', ({ chunks }) => chunks.length === at + 2)
  open(first.seen.run)
  await first.sent
  await page.until('the end', (_, client) => !client.getIsLoading())
  const what = `${thread} of ${lines.length} lines`
  sameEvents(page.seen.chunks, await stored(first.seen.run), what)
  if (canBuildAnew(lines, at)) sameTranscript(page.client.getMessages(), first.client.getMessages(), what)
  sameTranscript((await hydrated(server, thread)).messages, first.client.getMessages(), `${what}, and opened again`)
}

/** A random script, opened at a random line. */
async function atRandom(seed) {
  const [name, lines] = [`random-${seed}`, events(seed)]
  script(name, lines)
  await openedAfter(numbers(seed + 1000)(lines.length), name, lines)
}

/** A run that somebody has started elsewhere, without a message of a user, after one that has. */
async function withoutAMessage() {
  const thread = 'elsewhere'
  const { client } = chat({ adapter: FETCH[0], at: server, thread })
  await client.sendMessage('play brief')
  await runAlone('alone', thread, 'tour gated')
  const page = opened(FETCH[0], thread)
  await page.until('the prefix', ({ chunks }) => chunks.length === 2)
  open('alone')
  await page.until('the end', ({ chunks }) => chunks.at(-1)?.type === 'RUN_FINISHED')
  assert.equal(page.client.getMessages()[1].parts[0].content, 'Done.', 'what was said before')
  sameTranscript(page.client.getMessages(), (await hydrated(server, thread)).messages, 'a run without a message')
}

await main(async () => {
  await atEveryEvent()
  const thoughts = linesOf('thoughts')
  await eachOf(thoughts.keys(), 4, (at) => openedAfter(at, 'thoughts', thoughts))
  await eachOf(Array.from({ length: 60 }, (_, seed) => seed), 4, atRandom)
  await withoutAMessage()
})
