// What docs/client.md calls limits of the client: shown, so that the document is changed when the client is.

import assert from 'node:assert/strict'
import { FETCH, SOON } from './lib/adapters.mjs'
import { hydrated, sameEvents, sameTranscript } from './lib/expect.mjs'
import { chat } from './lib/follow.mjs'
import { ended, linesOf, main, open, server, stored } from './lib/host.mjs'
import { Proxy } from './lib/proxy.mjs'

const proxy = await new Proxy(server).listen()
const [adapter] = FETCH
const texts = (messages) => messages.flatMap(({ parts }) => parts.map(({ content }) => content))

function opened(thread) {
  const told = chat({ adapter, at: server, thread, persistence: true })
  told.client.attach()
  return told
}

async function started(where, text) {
  const told = chat({ adapter, at: server, ...where })
  const sent = told.client.sendMessage(text)
  await told.until('the run', ({ run, chunks }) => run && chunks.length >= 2)
  return { ...told, sent }
}

/** The connection is lost after the last event: an error, though nothing is missing. */
async function afterTheLastEvent() {
  const thread = 'after-the-last'
  const where = { at: proxy.through(thread), options: SOON, thread }
  const { client, seen, until } = await started(where, 'play tour gated')
  proxy.through(thread, [{ events: linesOf('tour').length, how: 'fin' }])
  proxy.cutAll('fin')
  open(seen.run)
  await until('the end', ({ chunks }) => chunks.at(-1).type === 'RUN_FINISHED')
  proxy.seen(thread)
  await until('the error', ({ errors }) => errors.length > 0)
  assert.deepEqual(seen.errors.map(({ name }) => name), ['DurableStreamIncompleteError'])
  sameEvents(seen.chunks, await stored(seen.run), thread)
  sameTranscript(client.getMessages(), (await hydrated(server, thread)).messages, thread)
}

/** A run that begins with reasoning, joined before its first text is complete. */
async function thoughtsFirst(lines) {
  const thread = `thoughts-${lines}`
  const first = await started({ thread }, 'play thoughts gated')
  open(first.seen.run, lines)
  await first.until('the lines', ({ chunks }) => chunks.length === lines + 2)
  const page = opened(thread)
  await page.until('the lines', ({ chunks }) => chunks.length === lines + 2)
  open(first.seen.run)
  await first.sent
  await page.until('the end', (_, client) => !client.getIsLoading())
  sameEvents(page.seen.chunks, await stored(first.seen.run), thread)
  const [whole, part] = [first, page].map(({ client }) => texts(client.getMessages()))
  assert.ok(whole.includes('One.') && whole.includes('Two.'))
  assert.ok(!part.includes('One.') && part.includes('Two.'), `${thread}: ${part}`)
  sameTranscript((await hydrated(server, thread)).messages, first.client.getMessages(), thread)
}

/** Events in chunks are not shown by a client that follows. */
async function chunks() {
  const { client, sent } = await started({ thread: 'chunks' }, 'play chunks')
  await sent
  assert.deepEqual(texts(client.getMessages()), ['play chunks', 'Done.'])
  const { messages } = await hydrated(server, 'chunks')
  assert.deepEqual(texts(messages), ['play chunks', 'In chunks.', 'Done.'])
}

/** An idle client does not hear of another one's run, and a client that has stopped does not hear of the end. */
async function unheard() {
  const thread = 'unheard'
  const idle = opened(thread)
  const { client, seen, sent, until } = await started({ thread }, 'play tour gated')
  open(seen.run, 13)
  await until('the lines', ({ chunks }) => chunks.length === 15)
  client.stop()
  await sent
  await cancel(thread)
  await ended(seen.run)
  const { messages } = await hydrated(server, thread)
  const states = (messages) => messages.flatMap(({ parts }) => parts.flatMap(({ state }) => state ?? []))
  assert.ok(states(messages).includes('error'), 'the call that was interrupted')
  assert.ok(!states(client.getMessages()).includes('error'))
  assert.deepEqual(idle.client.getMessages(), [])
  // What remounting does.
  idle.client.detach()
  idle.client.attach()
  await idle.until('the transcript', (_, client) => client.getMessages().length > 0)
  sameTranscript(idle.client.getMessages(), messages, thread)
}

async function cancel(threadId) {
  const [headers, body] = [{ 'Content-Type': 'application/json' }, JSON.stringify({ threadId })]
  assert.equal((await fetch(`${server}/api/chat/cancel`, { method: 'POST', headers, body })).status, 204)
}

/** An agent that ignores SIGTERM keeps its thread busy until it is killed. */
async function stubborn() {
  const thread = 'stubborn'
  const { client, seen, sent } = await started({ thread }, 'play tour gated stubborn')
  const { run } = seen
  client.stop()
  await sent
  await cancel(thread)
  await client.sendMessage('play brief')
  assert.match(seen.errors[0].message, /409/)
  assert.equal((await ended(run)).status, 'aborted')
}

await main(async () => {
  await Promise.all([afterTheLastEvent(), ...[3, 5, 7].map(thoughtsFirst), chunks(), unheard(), stubborn()])
})
