import { CURRENT_PLATFORM } from '../test/e2e/terraform-cli.ts'
import type { Cast } from './cast.ts'
import type { LogEntry } from './mirror.ts'
import type { SeenRequest } from './origin-process.ts'
import { drawFlow, formatSize } from './picture.ts'

/** Draws what one installation moved. `fetched`: the requests to the origin; undefined if it is gone. */
export async function showFlow(
  { screen, cache, client }: Cast,
  asked: readonly LogEntry[],
  fetched: readonly SeenRequest[] | undefined,
): Promise<void> {
  const archives = await cache.archives()
  screen.picture(
    drawFlow({
      client: client.program,
      asked: asked.length,
      gotBytes: asked.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
      fetched: fetched && {
        requests: fetched.length,
        archives: fetched.filter(({ kind }) => kind === 'archive').length,
      },
      archives: archives.length,
      cachedBytes: archives.reduce((sum, { size }) => sum + size, 0),
    }),
  )
}

/** Shows who vouched for what is held, by the mirror's records; returns the key ids, sorted. */
export async function showVerification({ screen, cache }: Cast): Promise<string[]> {
  const archives = await cache.archives()
  const signed = archives.filter(({ authentication }) => authentication.rule === 'signed-checksums')
  const signers = (await cache.releases()).flatMap(({ address, version, platforms }) => {
    const { authentication } = platforms[CURRENT_PLATFORM] ?? {}
    return authentication?.rule === 'signed-checksums' ? [{ address, version, ...authentication.signer }] : []
  })
  screen.facts('verified', [
    `${signed.length} of ${archives.length} archives by their SHA256SUMS, and these by their signatures:`,
    ...signers.map(
      ({ address, version, keyId, userId }) => `${shortName(address)} ${version} by key ${keyId}, ${userId}`,
    ),
  ])
  return signers.map(({ keyId }) => keyId).toSorted()
}

/** Shows the hashes that the mirror states for this platform; returns all that it states. */
export async function showStatedHashes({ screen, mirror, cache }: Cast): Promise<Set<string>> {
  const stated = new Set<string>()
  const lines: string[] = []
  for (const { address, version, platform } of await cache.archives()) {
    const { archives } = await mirror.versionDocument(address, version, platform)
    for (const { hashes } of Object.values(archives)) for (const hash of hashes) stated.add(hash)
    const others = Object.keys(archives).filter((each) => each !== platform)
    lines.push(
      `${shortName(address)} ${version} ${platform} (and for ${others.length} other ${others.length === 1 ? 'platform' : 'platforms'}):`,
    )
    lines.push(...(archives[platform]?.hashes ?? []).map((hash) => `  ${hash}`))
  }
  screen.facts('stated', lines)
  return stated
}

/** Shows the files that the mirror keeps. */
export async function showCache({ screen, cache }: Cast): Promise<void> {
  const [archives, blobs] = [await cache.archives(), await cache.blobs()]
  const total = blobs.reduce((sum, { size }) => sum + size, 0)
  const lines = archives.map(({ filename, size }) => `${filename}, ${formatSize(size)}`)
  lines.push(`with SHA256SUMS, signatures and keys: ${blobs.length} files, ${formatSize(total)}`)
  screen.facts('cached', lines)
}

function shortName(address: string): string {
  return address.slice(address.indexOf('/') + 1)
}
