// Scripts that look random and are the same every time.

/** Numbers below a number, of a seed. */
export function numbers(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
}

/** What an agent may print: texts, reasoning and tool calls in any order, some of it empty or unanswered. */
export function events(seed) {
  const below = numbers(seed)
  const out = []
  const calls = []
  let text
  const said = () => Array.from({ length: below(3) }, (_, n) => `${n} ${'wörd '.repeat(1 + below(2))}`)
  const streamed = (kind, id, deltas) => [
    { type: `${kind}_START`, messageId: id, role: kind === 'TEXT_MESSAGE' ? 'assistant' : 'reasoning' },
    ...deltas.map((delta) => ({ type: `${kind}_CONTENT`, messageId: id, delta })),
    { type: `${kind}_END`, messageId: id },
  ]
  for (let n = 0; n < 2 + below(8); n++) {
    const id = `@@-${n}`
    switch (below(4)) {
      case 0:
        out.push(...streamed('TEXT_MESSAGE', id, said()))
        text = id
        break
      case 1:
        out.push({ type: 'REASONING_START', messageId: id })
        out.push(...streamed('REASONING_MESSAGE', id, said()))
        out.push({ type: 'REASONING_END', messageId: id })
        break
      case 2: {
        const parent = text && below(2) ? { parentMessageId: text } : {}
        out.push({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'look', ...parent })
        const [args] = [['{"a":', '"ü"}'], ['{}'], ['not JSON'], []].slice(below(4))
        out.push(...args.map((delta) => ({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta })))
        out.push({ type: 'TOOL_CALL_END', toolCallId: id })
        calls.push(id)
        break
      }
      default: {
        const [call] = calls.splice(below(calls.length), 1)
        if (!call) break
        const content = ['{"ok":[1,2.5]}', 'plain', '{"error":"no"}', '42', ''][below(5)]
        const failed = below(2) ? { metadata: { tanstack: { state: 'output-error' } } } : {}
        out.push({ type: 'TOOL_CALL_RESULT', messageId: id, toolCallId: call, content, role: 'tool', ...failed })
      }
    }
  }
  return out
}
