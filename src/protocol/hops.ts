/**
 * Request header that names the instances of Terramirror that a request has passed, nearest last. An instance that
 * finds itself in the list stops: mirrors must not ask each other in a circle.
 */
export const HOPS_HEADER = 'Terramirror-Hops'

const maxHops = 16
const hopPattern = /^[A-Za-z0-9-]{1,64}$/

/** Reads the hop header of a request: at most 16 instance names; whatever is not a name is left out. */
export function parseHops(header: string | undefined): readonly string[] {
  if (header === undefined) return []
  // A list of maxHops names is never longer than this; the rest of a longer header is ignored unread.
  const names = header.slice(0, maxHops * 66).split(',')
  return names
    .map((name) => name.trim())
    .filter((name) => hopPattern.test(name))
    .slice(0, maxHops)
}

/** The header that the instance `instanceId` sends on: the hops so far and itself at the end. */
export function formatHops(hops: readonly string[], instanceId: string): string {
  return [...hops, instanceId].join(', ')
}
