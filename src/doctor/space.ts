import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import prettyBytes from 'pretty-bytes'
import type { Config } from '../config/schema.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Less than this, and records and documents are soon in danger too. */
const LOW_BYTES = 500_000_000
const LOW_INODES = 1_000

/** Whether the disk of the data folder has room, and agrees with the limits of `archives`. */
export async function checkSpace({
  dataDir,
  archives,
}: Pick<Config, 'dataDir' | 'archives'>): Promise<readonly Finding[]> {
  const about = findingsAbout('space')
  const { bavail, blocks, bsize, files, ffree } = await statfs(await nearest(dataDir))
  const free = bavail * bsize
  const total = blocks * bsize
  const { maxSize, minFree, maxArchiveSize } = archives
  const findings: Finding[] = []
  if (minFree !== undefined && minFree >= total) {
    const text = `archives.minFree (${prettyBytes(minFree)}) is more than the whole disk (${prettyBytes(total)}): nothing will be fetched`
    findings.push(about.problem(text, 'Set archives.minFree to less, or use a larger disk.'))
  } else if (minFree !== undefined && free < minFree) {
    const text = `${prettyBytes(free)} are free, less than archives.minFree (${prettyBytes(minFree)}): archives are evicted, and what is not held is refused`
    findings.push(about.problem(text, 'Make room on that disk, or set archives.minFree to less.'))
  } else if (free < LOW_BYTES) {
    findings.push(
      about.problem(`only ${prettyBytes(free)} are free`, 'Make room on that disk: nothing new can be kept.'),
    )
  } else if (free < maxArchiveSize && (maxSize === undefined || maxSize > free)) {
    const text = `${prettyBytes(free)} are free, less than the largest archive that is taken (archives.maxArchiveSize, ${prettyBytes(maxArchiveSize)})`
    findings.push(about.warning(text, 'Make room on that disk, or set archives.maxSize so that old archives go.'))
  }
  if (maxSize !== undefined && maxSize > total) {
    const text = `archives.maxSize (${prettyBytes(maxSize)}) is more than the whole disk (${prettyBytes(total)}): the disk will be full first`
    findings.push(about.warning(text, 'Set archives.maxSize to less, or archives.minFree too.'))
  }
  if (files > 0 && ffree < LOW_INODES) {
    findings.push(
      about.problem(
        `the file system has only ${ffree} inodes left`,
        'Remove small files there, or make a file system with more.',
      ),
    )
  }
  return findings.length > 0 ? findings : [about.ok(`${prettyBytes(free)} of ${prettyBytes(total)} are free`)]
}

async function nearest(path: string): Promise<string> {
  for (let found = path; ; found = dirname(found)) {
    const isThere = await stat(found).then(
      () => true,
      () => false,
    )
    if (isThere || found === dirname(found)) return found
  }
}
