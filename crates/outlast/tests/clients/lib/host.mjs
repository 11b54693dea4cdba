// What only the test that has started this script can tell or do. Asked and answered in lines of JSON.

import fs from 'node:fs'
import path from 'node:path'
import readline from 'node:readline'

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
let last = Promise.resolve()

function ask(what, more) {
  last = last.then(async () => {
    process.stdout.write(JSON.stringify({ ask: what, ...more }) + '\n')
    const { value, done } = await lines.next()
    if (done) throw new Error(`nobody answers ${what}`)
    return JSON.parse(value)
  })
  return last
}

/** The run's stored events, as `outlast logs --json` prints them: `{id, chunk}`. */
export const stored = (run) => ask('log', { run })

/** The run's record once it has ended. */
export const ended = (run) => ask('ended', { run })

/** Starts this run, which prints a script's lines, on the command line; without a message of a user. */
export const runAlone = (run, thread, script) => ask('run', { run, thread, script })

/** Kills the server with SIGKILL. */
export const killServer = () => ask('kill')

/** Ends the server with SIGTERM, and waits until it has. */
export const endServer = () => ask('end')

/** Starts another server, on the same address. */
export const startServer = () => ask('start')

/** Lets the events of all runs that have ended age out. */
export const age = () => ask('age')

/** Starts a server beside it that wants a token: `{url, token}`. */
export const serverWithToken = () => ask('token')

/** Where the server listens. */
export const server = process.env.SERVER

/** A file beside the tests. */
export const file = (name) => path.join(process.env.CLIENTS, name)

/** Lets the run's gated agent print its first `lines` lines; all of them, unless said. */
export function open(run, lines = 1_000_000) {
  const gate = path.join(process.env.GATES, run)
  fs.writeFileSync(`${gate}.new`, `${lines}\n`)
  fs.renameSync(`${gate}.new`, gate)
}

/** Makes a script that the agent can play. */
export function script(name, events) {
  const text = events.map((event) => JSON.stringify(event) + '\n').join('')
  fs.writeFileSync(path.join(process.env.SCRIPTS, `${name}.jsonl`), text)
}

/** The events that a script prints. */
export function linesOf(name) {
  const text = fs.readFileSync(path.join(process.env.SCRIPTS, `${name}.jsonl`), 'utf8')
  return text.trim().split('\n').map((line) => JSON.parse(line))
}

/** Looks again and again until this yields something. */
export async function eventually(what, condition) {
  const deadline = Date.now() + 60_000
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Does this for each item, several at a time. */
export async function eachOf(items, atOnce, body) {
  const left = [...items].entries()
  const worker = async () => {
    for (const [, item] of left) await body(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** Runs the script, and ends the process. */
export async function main(body) {
  try {
    await body()
    process.exit(0)
  } catch (error) {
    console.error(error)
    process.exit(1)
  }
}
