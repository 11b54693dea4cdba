// Chromium, without a window.

import { chromium } from 'playwright-core'

/** Started once for all pages. */
export async function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
      ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
    ],
  })
}
