const MAX_LENGTH = 2_048

/**
 * Why a request target is one that no client of ours sends: overlong, control bytes, backslashes, broken percent
 * encoding, dot segments, plain or encoded. Undefined for all others. Looks at the raw target, before anything
 * normalises it.
 */
export function findHostility(target: string): string | undefined {
  if (target.length > MAX_LENGTH) return `the URL is longer than ${MAX_LENGTH} characters`
  const [path = ''] = target.split('?', 1)
  if (!path.startsWith('/')) return 'the request target is not a path'
  for (const segment of path.split('/')) {
    let decoded: string
    try {
      decoded = decodeURIComponent(segment)
    } catch {
      return 'the URL has broken percent encoding'
    }
    if (decoded === '.' || decoded === '..') return 'the URL has dot segments'
    if (/[\p{Cc}/\\]/u.test(decoded)) return 'the URL has control characters or slashes inside a segment'
  }
  return undefined
}
