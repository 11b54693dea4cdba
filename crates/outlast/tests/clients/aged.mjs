// A run whose events have aged out: its thread is still there, as its messages.

import assert from 'node:assert/strict'
import { FETCH } from './lib/adapters.mjs'
import { hydrated, sameTranscript } from './lib/expect.mjs'
import { chat, join } from './lib/follow.mjs'
import { age, eachOf, main, server, stored } from './lib/host.mjs'

await main(async () => {
  const told = new Map()
  await eachOf(FETCH, 2, async (adapter) => {
    const thread = `aged-${adapter}`
    const { client, seen } = chat({ adapter, at: server, thread })
    await client.sendMessage('play tour')
    assert.deepEqual(seen.errors, [])
    told.set(adapter, { thread, run: seen.run, messages: client.getMessages() })
  })
  await age()
  for (const [adapter, { thread, run, messages }] of told) {
    // What the client's documentation says: a run that yields nothing is replaced by its transcript.
    const { chunks, error } = await join({ adapter, at: server, run, name: thread })
    assert.deepEqual(chunks, [], 'a run that has aged out yields nothing')
    assert.ok(error, 'and is not taken for one that said nothing')
    sameTranscript((await hydrated(server, thread)).messages, messages, thread)
    const page = chat({ adapter, at: server, thread, persistence: true })
    page.client.attach()
    await page.until('the transcript', (_, client) => client.getMessages().length === messages.length)
    sameTranscript(page.client.getMessages(), messages, `${thread}, opened as a page`)
    assert.deepEqual([page.seen.errors, page.client.getIsLoading()], [[], false])
    await page.client.sendMessage('play brief')
    assert.deepEqual(page.seen.errors, [], 'the thread goes on')
    assert.ok((await stored(page.seen.run)).length > 0)
  }
})
