// Chromium, without a window.

import { chromium } from 'playwright-core'

/** Started once for all pages. A name may lead to an address of this machine. */
export async function browser(name, address) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      ...(name ? [`--host-resolver-rules=MAP ${name} ${address}`] : []),
      ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
      ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
    ],
  })
}
