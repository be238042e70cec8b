import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Disk blocks of blobs and of what is on its way in, as the disk tells them; by inode, so that a rename counts once. */
function filesOf(folder: string, found = new Map<number, number>()): Map<number, number> {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) filesOf(path, found)
    else {
      const facts = lstatSync(path, { throwIfNoEntry: false })
      if (facts !== undefined) found.set(facts.ino, facts.blocks * 512)
    }
  }
  return found
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function usedFiles(dataDir: string): Map<number, number> {
  return filesOf(join(dataDir, 'tmp'), filesOf(join(dataDir, 'blobs')))
}

/** Bytes of disk blocks that all blobs take. */
export function blobBytes(dataDir: string): number {
  return sum(filesOf(join(dataDir, 'blobs')).values())
}

/**
 * Watches from outside how much blobs and unfinished files take, until it is disposed of. One look takes some time, in
 * which files come and go; so it looks twice, and what it saw both times was there at once.
 */
export class DiskWatch implements Disposable {
  /** The most that was seen, in bytes. */
  peak = 0
  looks = 0
  readonly #stop = new AbortController()

  constructor(dataDir: string) {
    void this.#watch(dataDir)
  }

  async #watch(dataDir: string): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const first = usedFiles(dataDir)
      const second = usedFiles(dataDir)
      const both = [...first].filter(([inode]) => second.has(inode))
      this.peak = Math.max(this.peak, sum(both.map(([inode, bytes]) => Math.min(bytes, second.get(inode) ?? 0))))
      this.looks += 1
      await sleep(10, undefined, { signal }).catch(() => undefined)
    }
  }

  [Symbol.dispose](): void {
    this.#stop.abort()
  }
}

function sum(bytes: Iterable<number>): number {
  let total = 0
  for (const each of bytes) total += each
  return total
}
