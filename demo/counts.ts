import type { LogEntry } from './mirror.ts'
import type { SeenRequest } from './origin-process.ts'

/** The origin's words for what it is asked, in the order in which a mirror asks. */
const ORIGIN_WORDS: Readonly<Record<SeenRequest['kind'], string>> = {
  discovery: 'discovery',
  versions: 'version list',
  download: 'download',
  sums: 'SHA256SUMS',
  signature: 'signature',
  archive: 'archive',
  'module-versions': 'module version list',
  'module-download': 'module location',
  git: 'git',
  other: 'something else',
}

/** The entries about requests of the network mirror protocol. */
export function protocolRequests(entries: readonly LogEntry[]): LogEntry[] {
  return entries.filter(({ msg, provider }) => msg === 'request' && provider !== undefined)
}

/** `2 index.json, 2 VERSION.json, …`: what a client asked the mirror for. */
export function countAsked(entries: readonly LogEntry[]): string {
  return countWords(entries.map(wordFor))
}

/** `1 discovery, 2 version list, …`: what the mirror asked the origin for. */
export function countFetched(requests: readonly SeenRequest[]): string {
  const kinds = Object.keys(ORIGIN_WORDS) as SeenRequest['kind'][]
  const sorted = kinds.flatMap((kind) => requests.filter((request) => request.kind === kind))
  return countWords(sorted.map(({ kind }) => ORIGIN_WORDS[kind]))
}

/** `6 hit, 2 stale`: where the mirror's answers came from. */
export function countOutcomes(entries: readonly LogEntry[]): string {
  return countWords(entries.map(({ outcome }) => outcome ?? 'refused'))
}

function wordFor({ method, route }: LogEntry): string {
  if (route?.endsWith('/index.json')) return 'index.json'
  if (route?.endsWith('/:version.json')) return 'VERSION.json'
  return method === 'HEAD' ? 'archive (HEAD)' : 'archive'
}

function countWords(words: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].map(([word, count]) => `${count} ${word}`).join(', ')
}
