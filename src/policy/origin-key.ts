/**
 * Which of the configured origins a host belongs to: the one of its own name, else the longest pattern that it is below
 * (`*.corp.example`; on the default port only). `keys` are the keys of `origins` in the configuration.
 */
export function findOriginKey(keys: Iterable<string>, hostname: string): string | undefined {
  let longest: string | undefined
  for (const key of keys) {
    if (key === hostname) return key
    const matches = key.startsWith('*.') && hostname.endsWith(key.slice(1))
    if (matches && key.length > (longest?.length ?? 0)) longest = key
  }
  return longest
}
