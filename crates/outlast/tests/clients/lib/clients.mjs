// Clients, here or in a page.

import { ADAPTERS, FETCH } from './adapters.mjs'
import { browser } from './browser.mjs'
import { bundle } from './docs.mjs'
import * as follow from './follow.mjs'
import { file } from './host.mjs'

/** The adapters' names, and what follows a run with one of them: where there is a browser, in a page of it. */
export async function clients(proxy) {
  const saw = (name) => proxy.seen(name)
  globalThis.saw = saw
  if (!process.env.CHROMIUM) return { ...follow, adapters: FETCH, close() {} }
  const chromium = await browser()
  return { ...(await lab(chromium, proxy, proxy.origin, saw)), close: () => chromium.close() }
}

/** Clients in a page of this origin, which the proxy serves. */
export async function lab(chromium, proxy, origin, saw = () => {}) {
  proxy.pages.set('/lab.js', { type: 'text/javascript', body: await bundle(file('lab.mjs')) })
  const html = `<!doctype html><script type="module">import * as lab from '/lab.js'; window.lab = lab</script>`
  proxy.pages.set('/lab', { type: 'text/html', body: html })
  const page = await chromium.newPage()
  await page.exposeFunction('saw', saw)
  await page.goto(`${origin}/lab`)
  await page.waitForFunction(() => window.lab)
  const inPage = (name) => (args) => page.evaluate(([name, args]) => window.lab[name](args), [name, args])
  return { send: inPage('send'), join: inPage('join'), adapters: Object.keys(ADAPTERS) }
}
