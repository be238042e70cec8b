import type { ArchiveFormat } from '../../../protocol/module-source.ts'

/** Bytes at the start of a file that are enough to tell its format. */
export const HEAD_BYTES = 512

/** The outermost format of an archive. */
export type OuterFormat = 'zip' | 'gzip' | 'bzip2' | 'xz' | 'zstd' | 'tar'

/**
 * Tells an archive by its first bytes, whatever its name or media type says; `stated` decides only where the bytes do
 * not tell (a tar from before 1988 has no mark).
 */
export function detectFormat(head: Buffer, stated: ArchiveFormat | undefined): OuterFormat | undefined {
  const starts = (...bytes: number[]) => bytes.every((byte, index) => head[index] === byte)
  // A zip without entries begins with its end record.
  if (starts(0x50, 0x4b, 0x03, 0x04) || starts(0x50, 0x4b, 0x05, 0x06)) return 'zip'
  if (starts(0x1f, 0x8b)) return 'gzip'
  if (starts(0x42, 0x5a, 0x68)) return 'bzip2'
  if (starts(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00)) return 'xz'
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) return 'zstd'
  if (head.subarray(257, 262).toString('latin1') === 'ustar') return 'tar'
  return stated === 'tar' ? 'tar' : undefined
}
