import type { Hostname } from '../protocol/hostname.ts'

/** Says whether providers of an origin may be served at all. */
export type OriginAllowList = (hostname: Hostname) => boolean

/**
 * Allows the hosts that the configuration names. `*.corp.example` allows every host below `corp.example`, not
 * `corp.example` itself, on the default port only.
 */
export function createOriginAllowList(patterns: Iterable<string>): OriginAllowList {
  const exact = new Set<string>()
  const suffixes: string[] = []
  for (const pattern of patterns) {
    if (pattern.startsWith('*.')) suffixes.push(pattern.slice(1))
    else exact.add(pattern)
  }
  return (hostname) => exact.has(hostname) || suffixes.some((suffix) => hostname.endsWith(suffix))
}
