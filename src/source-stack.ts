import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'

const BUNDLED_PLACE = /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g

const maps = new Map<string, SourceMap | undefined>()

/**
 * A stack with places in the sources instead of the bundle: `src/server.ts:10:5`. Read when there is a bug to report:
 * with Node's own `--enable-source-maps` every start would pay for it, with 6 MB. Places without a map stay.
 */
export function nameSources(stack: string): string {
  return stack.replaceAll(BUNDLED_PLACE, (place: string, url: string, line: string, column: string) => {
    const origin = findMap(url)?.findOrigin(Number(line), Number(column))
    if (origin === undefined || !('fileName' in origin)) return place
    return `${origin.fileName.replace(/^(\.\.\/)+/, '')}:${origin.lineNumber}:${origin.columnNumber}`
  })
}

function findMap(url: string): SourceMap | undefined {
  if (!maps.has(url)) maps.set(url, readMap(url))
  return maps.get(url)
}

function readMap(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8')) as SourceMapPayload)
  } catch {
    return undefined
  }
}
