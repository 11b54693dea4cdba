// What the tests call in a page that has nothing but the client.

export { join, send } from './lib/follow.mjs'
