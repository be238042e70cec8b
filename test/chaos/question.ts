import type { RequestKind } from '../origin/origin-request.ts'
import type { Scope } from './trouble.ts'
import type { Edition, TrueProvider, TrueVersion } from './truth.ts'

/** What was asked, in terms of the truth. */
export interface Question {
  readonly route: 'index' | 'document' | 'archive'
  readonly provider: TrueProvider
  /** The mirror may not serve this host. */
  readonly foreign: boolean
  readonly version: TrueVersion | undefined
  readonly platform: string | undefined
}

const KINDS: Readonly<Record<Question['route'], readonly RequestKind[]>> = {
  index: ['discovery', 'versions'],
  document: ['discovery', 'versions', 'download', 'sums', 'signature'],
  archive: ['discovery', 'versions', 'download', 'sums', 'signature', 'archive'],
}

/** Path of what a question asks for. */
export function pathOf({ route, provider, version, platform = '' }: Question): string {
  const base = `/providers/${provider.name}`
  const spelled = encodeURIComponent(version?.version ?? '')
  if (route === 'index') return `${base}/index.json`
  if (route === 'document') return `${base}/${spelled}.json`
  return `${base}/${spelled}/${platform}/archive.zip`
}

/** The requests to the origin that an answer may depend on. */
export function scopeOf({ route, provider, version, platform }: Question): Scope {
  return {
    kinds: KINDS[route],
    host: provider.host,
    provider: provider.name,
    ...(version === undefined ? {} : { version: version.spelling }),
    ...(platform === undefined ? {} : { platform }),
  }
}

/** True if its archives can be unpacked. */
export function isZip({ content }: Edition): boolean {
  return [...content.archives.values()].every(({ h1 }) => h1 !== undefined)
}
