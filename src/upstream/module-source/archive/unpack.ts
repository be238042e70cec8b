import { open } from 'node:fs/promises'
import type { ArchiveFormat } from '../../../protocol/module-source.ts'
import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import { detectFormat, HEAD_BYTES } from './archive-format.ts'
import { Spool, type SpoolPlace, type UnpackLimits } from './spool.ts'
import { unpackTar } from './unpack-tar.ts'
import { unpackZip } from './unpack-zip.ts'

/** One archive to unpack; plain values, so that a thread can be told. */
export interface UnpackJob {
  /** The archive. */
  readonly path: string
  /** A file to make, for the contents of all files. */
  readonly spoolPath: string
  /** What the source says of the format; the bytes have the last word. */
  readonly stated: ArchiveFormat | undefined
  readonly limits: UnpackLimits
}

/**
 * Unpacks an archive of any format that clients know: contents into the spool, everything else is returned, as it is
 * written in the archive. Paths are judged by `layOutTree`.
 * @throws MirrorError `MODULE_INVALID`
 */
export async function unpackArchive({
  path,
  spoolPath,
  stated,
  limits,
}: UnpackJob): Promise<SourceEntry<SpoolPlace>[]> {
  await using archive = await open(path, 'r')
  const head = Buffer.alloc(HEAD_BYTES)
  await archive.read(head, 0, HEAD_BYTES, 0)
  const format = detectFormat(head, stated)
  if (format === undefined) throw invalidModule('what came is no archive: neither zip nor tar, plain or compressed')
  await using file = await open(spoolPath, 'wx', 0o600)
  const spool = new Spool(file, { limits, packedBytes: (await archive.stat()).size })
  return format === 'zip' ? await unpackZip(path, { spool, limits }) : await unpackTar(path, format, { spool, limits })
}
