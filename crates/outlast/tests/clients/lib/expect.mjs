// What clients are compared with.

import assert from 'node:assert/strict'
import { StreamProcessor, restoreInboundChunk } from '@tanstack/ai/client'

/** The stored events as the client hands them on: it copies some fields of each to other places. */
export const chunksOf = (stored) => stored.map(({ chunk }) => plain(restoreInboundChunk(structuredClone(chunk))))

const plain = (value) => JSON.parse(JSON.stringify(value))

/** Asserts that exactly the stored events came, each once and in order. */
export function sameEvents(chunks, stored, what) {
  assert.deepEqual(plain(chunks), chunksOf(stored), `${what}: the events`)
}

/** Messages without what differs between clients that saw the same: times, and ids that a client has made up for a message
 * that began without one. */
export function normal(messages) {
  return plain(messages)
    .filter((message) => message.parts.length > 0)
    .map(({ id, role, parts }) => {
      const named = role === 'user' || parts.some((part) => part.type === 'text')
      return named ? { id, role, parts } : { role, parts }
    })
}

/** Asserts that two transcripts are the same. */
export function sameTranscript(messages, expected, what) {
  assert.deepEqual(normal(messages), normal(expected), `${what}: the transcript`)
}

/** Asserts that nothing went wrong. Where the connection may have been lost between the last event and the end of the body,
 * the client may say so: that is one of its limits. */
export function noError(errors, what, afterTheLast = false) {
  const others = errors.filter(({ name }) => !afterTheLast || name !== 'DurableStreamIncompleteError')
  assert.deepEqual(others, [], what)
}

/** The transcript that the client's own processor builds of a thread's turns, `{user, stored}`. */
export function built(turns) {
  const processor = new StreamProcessor()
  for (const { user, stored } of turns) {
    processor.addUserMessage(user.parts[0].content, user.id)
    processor.prepareAssistantMessage()
    for (const { chunk } of stored) processor.processChunk(restoreInboundChunk(structuredClone(chunk)))
    processor.finalizeStream()
  }
  return processor.getMessages()
}

/** The transcript that the server gives whoever opens the thread. */
export async function hydrated(server, thread) {
  const response = await fetch(`${server}/api/chat?threadId=${encodeURIComponent(thread)}`)
  assert.equal(response.status, 200)
  return response.json()
}

/** The thread's stored messages. */
export async function threadOf(server, thread) {
  const response = await fetch(`${server}/v1/threads/${encodeURIComponent(thread)}`)
  assert.equal(response.status, 200)
  return response.json()
}

/** Asserts of a proxy's streams that each asked for what follows an event that had come, and was given exactly that. What
 * comes just before a connection is lost may be lost with it, so a client may ask for it again. */
export function goesOnWhereItStopped(streams, stored, what) {
  const ids = stored.map(({ id }) => id)
  let [asked, passed] = [0, 0]
  for (const [n, stream] of streams.entries()) {
    const after = stream.lastEventId === null ? 0 : ids.indexOf(stream.lastEventId) + 1
    const told = `${what}: the ${n + 1}th asks for what follows ${stream.lastEventId}`
    assert.ok(asked <= after && after <= passed && (after > 0 || stream.lastEventId === null), told)
    assert.deepEqual(stream.ids, ids.slice(after, after + stream.ids.length), `${told}, and is given that`)
    asked = after
    passed = after + stream.ids.length
  }
  assert.equal(passed, ids.length, `${what}: every event has passed`)
}
