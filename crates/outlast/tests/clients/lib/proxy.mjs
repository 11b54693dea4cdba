// A proxy that loses connections where it is told to.
//
// Whoever goes through `/via/NAME/…` has a list of cuts of its own, one for each stream that it is given, in order.
// A cut is `{events, bytes, how}`: so many events pass, then so many bytes of the next one, and the connection is lost:
//   fin     closed in the middle of the body, as by a process that dies
//   rst     reset, as by a router that forgets
//   clean   the body is ended properly, as by a proxy that has a limit of its own

import http from 'node:http'

export const HOWS = ['fin', 'rst', 'clean']

export class Proxy {
  /** Whether connections are refused. */
  down = false
  /** What is served besides: path → {type, body}. */
  pages = new Map()
  #upstream
  #cuts = new Map()
  #streams = new Map()
  #live = new Set()
  #waiting = new Set()
  #server = http.createServer((request, response) => this.#take(request, response))

  constructor(upstream) {
    this.#upstream = new URL(upstream)
  }

  async listen() {
    this.#server.keepAliveTimeout = 0
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.origin = `http://127.0.0.1:${this.#server.address().port}`
    return this
  }

  /** The address that leads through these cuts. With `again`, the last of them is for every further stream too. No cut
   * comes before the client has `seen` an event: what is on its way may be lost with the connection, and a client that has
   * seen none does not come back. */
  through(name, cuts = [], again = false) {
    let seen
    const begun = new Promise((resolve) => (seen = resolve))
    this.#cuts.set(name, { cuts: [...cuts], again, begun, seen })
    return `${this.origin}/via/${name}`
  }

  /** The client that comes under this name has seen an event. */
  seen(name) {
    this.#cuts.get(name)?.seen()
  }

  /** The streams that were served under this name: `{method, path, run, lastEventId, ids}`, the last event's id not unless
   * it has passed whole. */
  streams(name = '') {
    return this.#streams.get(name) ?? []
  }

  /** Resolves once so many events have passed under this name, with the run that they are of. */
  async passed(name, events) {
    for (;;) {
      const streams = this.streams(name)
      if (streams.reduce((sum, { ids }) => sum + ids.length, 0) >= events) return streams[0].run
      await new Promise((resolve) => this.#waiting.add(resolve))
    }
  }

  /** Loses every connection that is open now. */
  cutAll(how = 'rst') {
    for (const cut of [...this.#live]) cut(how)
  }

  #take(request, response) {
    const [, name = '', path = request.url] = /^\/via\/([^/]+)(\/.*)$/.exec(request.url) ?? []
    const page = this.pages.get(path.split('?')[0])
    if (page) {
      response.writeHead(200, { 'content-type': page.type, 'cache-control': 'no-store' }).end(page.body)
      return
    }
    if (this.down) return request.socket.destroy()
    const { hostname, port } = this.#upstream
    const { method, headers } = request
    const onward = http.request({ hostname, port, path, method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      const sse = answer.headers['content-type'] === 'text/event-stream'
      const lines = answer.headers['content-type'] === 'application/x-ndjson'
      if (!sse && !lines) return answer.pipe(response)
      response.flushHeaders()
      const run = headers['x-run-id'] ?? null
      const told = { method, path, run, lastEventId: headers['last-event-id'] ?? null, ids: [] }
      this.#streams.set(name, [...this.streams(name), told])
      this.#pass(answer, response, { sse, told, cut: this.#next(name), begun: this.#cuts.get(name)?.begun })
    })
    onward.on('error', () => request.socket.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }

  #next(name) {
    const plan = this.#cuts.get(name)
    if (!plan) return undefined
    return plan.again && plan.cuts.length === 1 ? plan.cuts[0] : plan.cuts.shift()
  }

  #pass(answer, response, { sse, told, cut, begun }) {
    const end = sse ? '\n\n' : '\n'
    let pending = Buffer.alloc(0)
    let over = false
    const lose = async (how, when) => {
      if (over) return
      over = true
      this.#live.delete(lose)
      answer.destroy()
      await when
      if (how === 'clean') response.end()
      else if (how === 'fin') response.socket?.end()
      // What was written before is on its way first.
      else response.socket?.write('', () => response.socket?.resetAndDestroy())
    }
    this.#live.add(lose)
    response.on('close', () => this.#live.delete(lose))
    const reached = () => cut && cut.bytes === undefined && told.ids.length === cut.events
    if (reached()) return lose(cut.how)
    answer.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes])
      for (let at = pending.indexOf(end); at >= 0 && !over; at = pending.indexOf(end)) {
        const unit = pending.subarray(0, at + end.length)
        pending = pending.subarray(unit.length)
        const id = idOf(unit.toString('utf8'), sse)
        if (cut && id && told.ids.length === cut.events) {
          response.write(unit.subarray(0, cut.bytes))
          // A client takes an event at the end of its data's line.
          if (sse && cut.bytes >= unit.length - 1) told.ids.push(id)
          return lose(cut.how, begun)
        }
        response.write(unit)
        if (!id) continue
        told.ids.push(id)
        this.#waiting.forEach((resolve) => resolve())
        this.#waiting.clear()
        if (reached()) return lose(cut.how, begun)
      }
    })
    // The server has ended the body, or its connection was lost.
    answer.on('end', () => over || response.end(pending))
    answer.on('error', () => lose('rst'))
  }
}

function idOf(unit, sse) {
  if (sse) return /^id: (.*)$/m.exec(unit)?.[1]
  return unit.trim() === '' ? undefined : JSON.parse(unit).id
}
