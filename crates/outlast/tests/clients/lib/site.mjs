// The code of docs/client.md as pages that are open in Chromium.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { bundle, extract } from './docs.mjs'
import { eventually, file } from './host.mjs'
import { Proxy } from './proxy.mjs'

const code = file('documented')
export const names = extract(path.join(process.env.DOCS, 'client.md'), code)
fs.copyFileSync(file('watching.tsx'), path.join(code, 'watching.tsx'))
const { Message } = await import(await bundle(path.join(code, 'Message.tsx'), { outfile: file('Message.mjs') }))

const html = (script) =>
  `<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="${script}"></script>`

/** A site of its own behind a proxy, for one variant of the connection: `/` is the chat, `/watch` watches. */
export async function site(chromium, server, { variant, prepare } = {}) {
  const proxy = await new Proxy(server).listen()
  for (const [at, entry] of Object.entries({ '/': 'main.tsx', '/watch': 'watching.tsx' })) {
    const script = `/${entry.replace('tsx', 'js')}`
    proxy.pages.set(at, { type: 'text/html', body: html(script) })
    proxy.pages.set(script, { type: 'text/javascript', body: await bundle(path.join(code, entry), { variant }) })
  }
  const context = await chromium.newContext()
  context.setDefaultTimeout(60_000)
  if (prepare) await context.addInitScript(prepare)
  const broken = []
  const visit = async (page, thread, at = '/') => {
    await page.goto(`${proxy.origin}${at}?thread=${thread}`)
    return page
  }
  const blank = async () => {
    const page = await context.newPage()
    page.on('pageerror', (error) => broken.push(error))
    return page
  }
  const open = async (thread, at) => visit(await blank(), thread, at)
  let page
  /** The thread as a page shows it that opens it now. */
  const fresh = async (thread) => visit((page ??= await blank()), thread)
  const close = async () => {
    await context.close()
    assert.deepEqual(broken, [], 'errors that no page handled')
  }
  return { proxy, open, fresh, close }
}

/** Sends what a user types. */
export async function say(page, text) {
  await page.locator('input').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** Waits until the chat shows this. */
export const shows = (page, text) => page.locator('main').getByText(text, { exact: false }).first().waitFor()

/** Waits until the chat follows no run. */
export const settled = (page) => page.getByRole('button', { name: 'Send' }).waitFor()

/** Waits until the chat follows a run. */
export const following = (page) => page.getByRole('button', { name: 'Stop' }).waitFor()

/** What the chat shows, as HTML. */
export const shown = (page) => page.locator('main').innerHTML()

/** What the chat would show of these messages. */
export function rendered(page, messages) {
  const html = renderToStaticMarkup(messages.map((message) => createElement(Message, { key: message.id, message })))
  const parse = (html) => Object.assign(document.createElement('main'), { innerHTML: html }).innerHTML
  return page.evaluate(parse, html)
}

/** Waits until the chat shows the same as another one. */
export async function agrees(page, other, what) {
  const same = async () => (await shown(page)) === (await shown(other))
  await eventually(what, same).catch(async () => assert.equal(await shown(page), await shown(other), what))
}
