// Following runs with the unmodified client. Runs under Node and in a page.

import { ChatClient } from '@tanstack/ai-client'
import { ADAPTERS } from './adapters.mjs'

/** Tells whoever wants to know that a client has seen an event. */
const saw = (name) => globalThis.saw?.(name)

const nameOf = ({ name, message, code }) => ({ name, message, code })

/** Everything that a stream of the adapter yields, as JSON. */
async function all(stream, onChunk) {
  const chunks = []
  try {
    for await (const chunk of stream) {
      chunks.push(structuredClone(chunk))
      onChunk()
    }
  } catch (error) {
    return { chunks, error: nameOf(error) }
  }
  return { chunks, error: null }
}

/** Joins a run from its start. */
export function join({ adapter, at, options, run, name, onChunk = () => saw(name) }) {
  return all(ADAPTERS[adapter](at, options).joinRun(run), onChunk)
}

/** A `ChatClient` on this thread, and what it has seen. */
export function chat({ adapter, at, options, thread, ...more }) {
  const seen = { chunks: [], errors: [], run: null }
  const waiting = new Set()
  const look = () => waiting.forEach((check) => check())
  const client = new ChatClient({
    connection: ADAPTERS[adapter](at, options),
    threadId: thread,
    ...more,
    onChunk: (chunk) => {
      seen.chunks.push(structuredClone(chunk))
      saw(thread)
      look()
    },
    onError: (error) => {
      seen.errors.push(nameOf(error))
      look()
    },
    onRunIdChange: (run) => {
      seen.run = run ?? seen.run
      look()
    },
    onLoadingChange: look,
    onMessagesChange: look,
  })
  /** Resolves once this holds of what was seen. */
  const until = (what, holds) =>
    new Promise((resolve, reject) => {
      const inVain = () => {
        const { errors, run } = seen
        const told = JSON.stringify({ thread, run, events: seen.chunks.length, errors, status: client.getStatus() })
        reject(new Error(`waited in vain: ${what}; ${told}`))
      }
      const late = setTimeout(inVain, 60_000)
      const check = () => {
        if (!holds(seen, client)) return
        clearTimeout(late)
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
    })
  return { client, seen, until }
}

const isOver = ({ chunks }) => ['RUN_FINISHED', 'RUN_ERROR'].includes(chunks.at(-1)?.type)

/** Sends a message and follows the run to its end. */
export async function send({ text, ...where }) {
  const { client, seen, until } = chat(where)
  await client.sendMessage(text)
  // After an error of the connection the client still takes in what had come.
  await until('the end', isOver)
  return { ...seen, messages: client.getMessages(), status: client.getStatus() }
}
