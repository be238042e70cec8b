import { readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
/** The largest test writes one; several may run at a time. */
const ROOM_BYTES = 4_000_000_000

/**
 * The temporary folder for tests: a file system in memory where there is one with room whose programs may be run, else
 * the usual one. All files of the tests die with them, and each fsync that waits for a disk makes them slower for
 * nothing: what survives a `kill -9` is decided by the kernel, not by the disk.
 */
export function temporaryRoot(): string {
  try {
    const options =
      readFileSync('/proc/mounts', 'utf8')
        .match(/^\S+ \/dev\/shm tmpfs (\S+)/m)?.[1]
        ?.split(',') ?? []
    const { bavail, bsize } = statfsSync(MEMORY)
    const isFit = options.includes('rw') && !options.includes('noexec') && bavail * bsize >= ROOM_BYTES
    return isFit ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
