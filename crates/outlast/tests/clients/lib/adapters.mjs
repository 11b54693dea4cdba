// The published client's ways to the server. The lines of JSON are asked for in the URL: the client says no Accept.

import {
  fetchHttpStream,
  fetchServerSentEvents,
  xhrHttpStream,
  xhrServerSentEvents,
} from '@tanstack/ai-client'

/** By name: of the server's address and the adapter's options. */
export const ADAPTERS = {
  fetchServerSentEvents: (at, options) => fetchServerSentEvents(`${at}/api/chat`, options),
  fetchHttpStream: (at, options) => fetchHttpStream(`${at}/api/chat?format=ndjson`, options),
  xhrServerSentEvents: (at, options) => xhrServerSentEvents(`${at}/api/chat`, options),
  xhrHttpStream: (at, options) => xhrHttpStream(`${at}/api/chat?format=ndjson`, options),
}

/** Those that need no browser. */
export const FETCH = ['fetchServerSentEvents', 'fetchHttpStream']

/** Comes back at once: for tests that lose the connection often. An event that comes just before that may be lost with it,
 * so an attempt may be in vain. */
export const SOON = { reconnect: { delayMs: 1, maxAttempts: 50 } }
