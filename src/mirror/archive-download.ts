import type { BlobStore, IncomingBlob } from '../store/blob-store.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'
import { assertDigest, assertSafe, type FindUnsafety } from './archive-check.ts'
import type { ArchiveTail } from './archive-tail.ts'
import type { MirrorObserver } from './observer.ts'
import type { ReleasePlatform } from './release-record.ts'

/**
 * When clients get the bytes of an archive that is being fetched. `verified`: when all are there and verified.
 * `progressive`: while they come in, all but the last piece.
 */
export type Delivery = 'verified' | 'progressive'

/** One archive to bring into the store. */
export interface ArchiveJob {
  /** For messages. */
  readonly name: string
  readonly evidence: ReleasePlatform
  readonly upstream: ProviderUpstream
  readonly hops: readonly string[]
  /** Is told how far it is, and shown the bytes if they may be handed on while they come in. */
  readonly tail: ArchiveTail
  /** Ends the download: nobody wants it any more, or the process stops. */
  readonly signal: AbortSignal
}

/** What a download needs. */
export interface DownloadParts {
  readonly blobs: BlobStore
  readonly delivery: Delivery
  readonly findUnsafety: FindUnsafety
  readonly observer: MirrorObserver
}

/**
 * Sees to it that the archive is in the store, verified; returns its size. Equal bytes are one blob, whichever origin
 * they came from; but each is let in by its own evidence.
 * @throws MirrorError `UPSTREAM_*`, `CHECKSUM_MISMATCH`, `ARCHIVE_UNSAFE`, `STORAGE_*`
 */
export async function obtainArchive(job: ArchiveJob, parts: DownloadParts): Promise<number> {
  await using equal = await parts.blobs.open(job.evidence.digest)
  if (equal === undefined) return download(job, parts)
  await assertSafe(job.name, job.evidence, parts)
  return equal.size
}

async function download(job: ArchiveJob, parts: DownloadParts): Promise<number> {
  const { name, evidence, upstream, hops, signal } = job
  const { observer, blobs } = parts
  observer.downloading(1)
  try {
    // First, so that a full disk leaves no answer of the origin hanging.
    await using incoming = await blobs.create()
    const archive = await upstream.openArchive(evidence, { signal, hops })
    const tail = mayBeHandedOn(evidence, parts) ? job.tail : undefined
    const begin = (): void => {
      job.tail.arrived = { bytes: 0, size: archive.size }
      tail?.begin({ incoming, name, archiveUrl: evidence.archiveUrl, digest: evidence.digest, size: archive.size })
    }
    begin()
    let expected: number | undefined
    for await (const piece of archive) {
      // In here, so that a refusal closes the origin's answer.
      if (archive.size !== undefined && archive.size !== expected) await incoming.expect(archive.size)
      expected = archive.size
      if (piece.kind === 'restart') {
        await incoming.restart()
        begin()
      } else {
        await incoming.append(piece.bytes)
        job.tail.arrived.bytes += piece.bytes.length
        tail?.grow()
      }
    }
    assertDigest(name, evidence, incoming.digest())
    return await keep(job, incoming, parts)
  } finally {
    observer.downloading(-1)
  }
}

/** An unsigned archive is judged by its directory, which comes last: no piece of it may be unpacked before that. */
function mayBeHandedOn({ authentication }: ReleasePlatform, { delivery }: DownloadParts): boolean {
  return delivery === 'progressive' && authentication.rule === 'signed-checksums'
}

/** What is refused goes again, unless the same bytes came in by other evidence meanwhile. */
async function keep({ name, evidence }: ArchiveJob, incoming: IncomingBlob, parts: DownloadParts): Promise<number> {
  const { blobs } = parts
  const held = await blobs.stat(evidence.digest)
  const { size } = await incoming.commit()
  try {
    await assertSafe(name, evidence, parts)
  } catch (error) {
    if (held === undefined) await blobs.delete(evidence.digest)
    throw error
  }
  return size
}
