import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** So much of what was damaged is kept as evidence; more of the same tells nothing new, and fills the disk. */
const MAX_FILES = 100
const MAX_BYTES = 1_000_000_000

/**
 * Removes the oldest files of a quarantine folder beyond its limits; the newest always stays. What cannot be removed
 * stays: that is nobody's trouble who has just set something aside.
 */
export async function pruneQuarantine(
  folder: string,
  { maxFiles = MAX_FILES, maxBytes = MAX_BYTES }: { maxFiles?: number; maxBytes?: number } = {},
): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files: { path: string; size: number; at: number }[] = []
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const facts = await stat(path).catch(() => undefined)
    // A rename changes this time, and not that of the content.
    if (facts !== undefined) files.push({ path, size: facts.size, at: facts.ctimeMs })
  }
  files.sort((a, b) => b.at - a.at)
  let bytes = 0
  for (const [index, { path, size }] of files.entries()) {
    bytes += size
    if (index > 0 && (index >= maxFiles || bytes > maxBytes)) await rm(path, { force: true }).catch(() => undefined)
  }
}
