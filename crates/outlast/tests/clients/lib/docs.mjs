// The code of docs/client.md: blocks with a file's name after their language.

import fs from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'

/** Writes the blocks of the document as files. */
export function extract(document, into) {
  fs.mkdirSync(into, { recursive: true })
  const blocks = fs.readFileSync(document, 'utf8').matchAll(/^```(ts|tsx) (\S+)\n(.*?)^```$/gms)
  const names = []
  for (const [, , name, code] of blocks) {
    fs.writeFileSync(path.join(into, name), code)
    names.push(name)
  }
  return names
}

/** Bundles a file for browsers; or for Node, as a module's path. Files whose names have the variant before the extension
 * stand for those without it. */
export async function bundle(entry, { variant, outfile } = {}) {
  const instead = {
    name: 'variant',
    setup({ onResolve }) {
      onResolve({ filter: /^\.\// }, ({ path: wanted, resolveDir }) => {
        const file = path.join(resolveDir, `${wanted}.${variant}.ts`)
        return fs.existsSync(file) ? { path: file } : undefined
      })
    },
  }
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    logLevel: 'silent',
    plugins: variant ? [instead] : [],
    ...(outfile ? { outfile, platform: 'node', packages: 'external' } : { write: false, platform: 'browser' }),
    define: outfile ? {} : { 'process.env.NODE_ENV': '"production"' },
  })
  return outfile ?? result.outputFiles[0].text
}
