// The pages of docs/client.md: send, lose the connection, reload, a second tab, stop, the next message.

import assert from 'node:assert/strict'
import { browser } from './lib/browser.mjs'
import { lab } from './lib/clients.mjs'
import { built, sameEvents } from './lib/expect.mjs'
import { ended, eventually, main, open, server, serverWithToken, stored } from './lib/host.mjs'
import { Proxy } from './lib/proxy.mjs'
import { agrees, following, names, rendered, say, settled, shown, shows, site } from './lib/site.mjs'

const elsewhere = await new Proxy(server).listen()
const chromium = await browser('pages.test:80', new URL(elsewhere.origin).host)

/** The thread's nth run, once it is there. */
const runOf = (thread, n) =>
  eventually(`run ${n} of ${thread}`, async () => {
    const { runs } = await (await fetch(`${server}/v1/runs?threadId=${thread}`)).json()
    return runs.length === n && runs[0].runId
  })

/** Asserts that the page shows what a page shows that opens the thread now, and what its runs' logs say. */
async function isWhole(page, pages, thread, turns) {
  const fresh = await pages.fresh(thread)
  await settled(fresh)
  await agrees(page, fresh, `${thread}: as opened anew`)
  const logs = turns.map(async ({ text, run }) => ({
    user: { id: `user-${run}`, parts: [{ content: text }] },
    stored: await stored(run),
  }))
  assert.equal(await shown(page), await rendered(page, built(await Promise.all(logs))), `${thread}: as stored`)
}

/** Everything, with one way to connect. */
async function story(variant) {
  const thread = `story-${variant ?? 'sse'}`
  const pages = await site(chromium, server, { variant })
  const turns = []
  const begin = async (page, text) => {
    await say(page, text)
    await shows(page, text)
    const run = await runOf(thread, turns.length + 1)
    turns.push({ text, run })
    return run
  }

  const page = await pages.open(thread)
  const run = await begin(page, 'play tour gated')
  await following(page)
  const watcher = await pages.open(thread, '/watch')
  open(run, 3)
  await shows(page, 'Grüße. I look at 日本 👋')
  // One that is cut off before its first event does not come back.
  await watcher.getByText('RUN_STARTED').waitFor()
  pages.proxy.cutAll('rst')
  open(run, 8)
  await shows(page, 'Two files,')
  pages.proxy.cutAll('fin')
  const tab = await pages.open(thread)
  await following(tab)
  await agrees(tab, page, `${thread}: a second tab`)
  open(run, 13)
  await shows(page, 'input-streaming')
  await page.reload()
  await shows(page, 'play tour gated')
  await following(page)
  await agrees(page, tab, `${thread}: a page that was reloaded`)
  open(run, 18)
  await shows(page, '(complete)')
  pages.proxy.cutAll('rst')
  open(run)
  for (const each of [page, tab]) {
    await settled(each)
    await isWhole(each, pages, thread, turns)
  }
  await watcher.getByText('RUN_FINISHED').waitFor()
  const types = await watcher.locator('li').allInnerTexts()
  assert.deepEqual(types, (await stored(run)).map(({ chunk }) => chunk.type), `${thread}: watched`)

  // The tab is reloaded, or it would not hear of the next run.
  const next = await begin(page, 'play tour gated')
  open(next, 9)
  await tab.reload()
  await tab.getByText('one of them may be gone.').nth(1).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await settled(page)
  assert.equal((await ended(next)).status, 'aborted')
  await tab.getByRole('alert').getByText('cancelled').waitFor()
  await settled(tab)
  for (const each of [page, tab]) await isWhole(each, pages, thread, turns)

  const last = await begin(page, 'play brief')
  await shows(page, 'Done.')
  await settled(page)
  assert.equal((await ended(last)).status, 'completed')
  await isWhole(page, pages, thread, turns)
  await pages.close()
}

/** A connection that is lost before the first event, and the button for that. */
async function again() {
  const thread = 'again'
  const pages = await site(chromium, server)
  const page = await pages.open(thread)
  pages.proxy.through('', [{ events: 0, how: 'fin' }])
  await say(page, 'play tour gated')
  await page.getByRole('button', { name: 'Reconnect' }).click()
  await following(page)
  const run = await runOf(thread, 1)
  open(run)
  await settled(page)
  await isWhole(page, pages, thread, [{ text: 'play tour gated', run }])
  await pages.close()
}

/** A server that wants a token. */
async function withToken() {
  const { url, token } = await serverWithToken()
  const prepare = `sessionStorage.setItem('token', ${JSON.stringify(token)})`
  const pages = await site(chromium, url, { variant: 'token', prepare })
  const page = await pages.open('token')
  await say(page, 'play tour gated')
  const run = await runOf('token', 1)
  open(run, 3)
  await shows(page, 'Grüße.')
  pages.proxy.cutAll('fin')
  open(run, 8)
  await shows(page, 'Two files,')
  await page.reload()
  await shows(page, 'play tour gated')
  await page.getByRole('button', { name: 'Stop' }).click()
  await settled(page)
  assert.equal((await ended(run)).status, 'aborted')
  await pages.close()
  const strange = await site(chromium, url, { variant: 'token', prepare: prepare.replace(token, 'another-token') })
  const refused = await strange.open('token')
  await say(refused, 'play brief')
  await refused.getByRole('alert').getByText('401').waitFor()
  await strange.close()
}

/** A page of an origin that is not the server's, but that its configuration names; and of one that it does not. */
async function ofAnotherOrigin() {
  const { send, join, adapters } = await lab(chromium, elsewhere, 'http://pages.test')
  for (const adapter of adapters) {
    const { run, chunks, errors } = await send({ adapter, at: server, thread: `elsewhere-${adapter}`, text: 'play tour' })
    const log = await stored(run)
    sameEvents(chunks, log, adapter)
    sameEvents((await join({ adapter, at: server, run })).chunks, log, adapter)
    assert.deepEqual(errors, [], adapter)
  }
  const strange = await lab(chromium, elsewhere, elsewhere.origin)
  const [adapter] = strange.adapters
  const { chunks, error } = await strange.join({ adapter, at: server, run: 'any' })
  assert.deepEqual([chunks, error.name], [[], 'StreamReadError'])
}

await main(async () => {
  const variants = names.flatMap((name) => /^connection\.?(.*)\.ts$/.exec(name)?.[1] ?? [])
  assert.deepEqual(variants, ['', 'ndjson', 'xhr', 'xhr-ndjson', 'token'])
  const untold = variants.filter((variant) => variant !== 'token').map((variant) => variant || undefined)
  await Promise.all(untold.map(story))
  await again()
  await withToken()
  await ofAnotherOrigin()
  await chromium.close()
})
