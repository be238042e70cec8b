import { MirrorError, redactUrl } from '../errors.ts'
import type { BlobStore } from '../store/blob-store.ts'
import type { ReleasePlatform } from './release-record.ts'

/** Why the zip at `path` must not be unpacked, undefined if nothing is wrong; throws system errors of the disk. */
export type FindUnsafety = (path: string) => Promise<string | undefined>

/** @throws MirrorError `CHECKSUM_MISMATCH` unless the bytes that came are the published ones */
export function assertDigest(archive: string, evidence: ReleasePlatform, actual: string): void {
  if (actual === evidence.digest) return
  const upstreamUrl = redactUrl(evidence.archiveUrl)
  throw new MirrorError(
    'CHECKSUM_MISMATCH',
    `${archive}: the archive at ${upstreamUrl} has SHA-256 ${actual}, but ${evidence.digest} is published; refused`,
    { filename: evidence.filename, expected: evidence.digest, actual, upstreamUrl },
  )
}

/**
 * For a stored archive without a record. A signed one is its publisher's word, served as it is. Of an unsigned one,
 * checksums prove only where it came from, so it must at least be harmless to unpack.
 * @throws MirrorError `ARCHIVE_UNSAFE`, `STORAGE_FAILED`
 */
export async function assertSafe(
  archive: string,
  { authentication, archiveUrl, digest, filename }: ReleasePlatform,
  { blobs, findUnsafety }: { blobs: BlobStore; findUnsafety: FindUnsafety },
): Promise<void> {
  if (authentication.rule === 'signed-checksums') return
  await using file = await blobs.localFile(digest)
  if (file === undefined) throw vanished(archive)
  const reason = await findUnsafety(file.path).catch((error: unknown) => {
    throw new MirrorError('STORAGE_FAILED', `${archive} cannot be read from the store`, { operation: 'read' }, error)
  })
  if (reason === undefined) return
  const upstreamUrl = redactUrl(archiveUrl)
  const message = `${archive}: the archive at ${upstreamUrl} is unsigned and not safe to unpack: ${reason}; refused`
  throw new MirrorError('ARCHIVE_UNSAFE', message, { filename, reason, upstreamUrl })
}

/** A stored archive is not there any more. */
export function vanished(archive: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `${archive} vanished from the store after it was written`, {
    operation: 'open',
  })
}
