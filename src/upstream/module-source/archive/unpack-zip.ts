import { crc32 } from 'node:zlib'
import yauzl, { type Entry } from 'yauzl'
import { isMirrorError } from '../../../errors.ts'
import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import type { Spool, SpoolPlace, UnpackLimits } from './spool.ts'

const UNIX = 3
const FILE_TYPE = 0o170000
const LINK = 0o120000
const FOLDER = 0o040000
const MAX_TARGET_BYTES = 4_096

/**
 * Unpacks a zip into the spool, by its central directory as clients do.
 * @throws MirrorError `MODULE_INVALID`
 */
export async function unpackZip(
  path: string,
  { spool, limits }: { spool: Spool; limits: UnpackLimits },
): Promise<SourceEntry<SpoolPlace>[]> {
  const entries: SourceEntry<SpoolPlace>[] = []
  try {
    const zip = await yauzl.openPromise(path, { decodeStrings: false })
    try {
      if (zip.entryCount > limits.files) throw invalidModule(`it has more than ${limits.files} files`)
      for await (const entry of zip.eachEntry()) {
        const found = await readEntry(zip, entry, spool)
        if (found !== undefined) entries.push(found)
      }
    } finally {
      zip.close()
    }
  } catch (error) {
    throw isMirrorError(error) ? error : invalidModule('its archive (zip) is damaged', error)
  }
  return entries
}

async function readEntry(zip: yauzl.ZipFile, entry: Entry, spool: Spool): Promise<SourceEntry<SpoolPlace> | undefined> {
  const path = nameOf(entry)
  const mode = entry.versionMadeBy >> 8 === UNIX ? entry.externalFileAttributes >>> 16 : 0
  if (path.endsWith('/') || (mode & FILE_TYPE) === FOLDER) return undefined
  if (entry.isEncrypted()) throw invalidModule(`${JSON.stringify(path.slice(0, 120))} is encrypted`)
  if ((mode & FILE_TYPE) === LINK) {
    if (entry.uncompressedSize > MAX_TARGET_BYTES) throw invalidModule('the target of a link is too long')
    let target = ''
    for await (const bytes of checked(zip, entry)) target += bytes.toString('utf8')
    return { kind: 'link', path, target, from: 'folder' }
  }
  const { offset, size } = await spool.add(checked(zip, entry))
  return { kind: 'file', path, executable: (mode & 0o111) !== 0, size, content: { offset } }
}

/** The library does not compare the checksums; the clients do. */
async function* checked(zip: yauzl.ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  let crc = 0
  for await (const bytes of (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
    crc = crc32(bytes, crc)
    yield bytes
  }
  if (crc !== entry.crc32) throw invalidModule('its archive (zip) is damaged: a checksum is wrong')
}

function nameOf(entry: Entry): string {
  const name = entry.fileName as unknown as Buffer
  return new TextDecoder('utf-8', { fatal: false }).decode(name)
}
