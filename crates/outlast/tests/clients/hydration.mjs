// Whoever opens a thread is given what a client has built that watched from the start.

import assert from 'node:assert/strict'
import { FETCH } from './lib/adapters.mjs'
import { hydrated, sameEvents, sameTranscript, threadOf } from './lib/expect.mjs'
import { chat } from './lib/follow.mjs'
import { eachOf, main, script, server, stored } from './lib/host.mjs'
import { events } from './lib/random.mjs'

/** Two turns of one client, that sends the whole conversation with the second in a form of its own. */
async function turns(seed) {
  const name = `random-${seed}`
  script(name, events(seed))
  const { client, seen } = chat({ adapter: FETCH[seed % FETCH.length], at: server, thread: name })
  await client.sendMessage(`play ${name}`)
  sameEvents(seen.chunks.splice(0), await stored(seen.run), name)
  const first = client.getMessages()
  const opened = await hydrated(server, name)
  assert.equal(opened.activeRun, null)
  sameTranscript(opened.messages, first, name)
  const { messages: before } = await threadOf(server, name)
  await client.sendMessage('play brief')
  assert.deepEqual(seen.errors, [], name)
  const [user] = client.getMessages().slice(first.length)
  const said = [
    { id: user.id, role: 'user', content: 'play brief' },
    { id: `${seen.run}-a1`, role: 'assistant', content: 'Done.' },
  ]
  assert.deepEqual((await threadOf(server, name)).messages, [...before, ...said], `${name}: every message once`)
  sameTranscript((await hydrated(server, name)).messages, client.getMessages(), `${name}, after the second turn`)
}

await main(async () => {
  await eachOf(Array.from({ length: 120 }, (_, seed) => seed), 6, turns)
})
