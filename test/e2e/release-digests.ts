import type { Release } from '../origin/release.ts'
import type { TestMirror } from './mirror-fixture.ts'

/** The digests of `acme/widget` 1.0.0 by platform, as a client is told them. */
export async function digestsIn(mirror: TestMirror): Promise<Record<string, string>> {
  const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
  const entries = Object.entries<{ hashes: string[] }>(archives)
  return Object.fromEntries(entries.map(([platform, { hashes }]) => [platform, String(hashes[0]).slice(3)]))
}

/** The same, as they were published. */
export function digestsOf(release: Release): Record<string, string> {
  return Object.fromEntries(release.packages.map(({ platform, sha256: digest }) => [platform, digest]))
}
