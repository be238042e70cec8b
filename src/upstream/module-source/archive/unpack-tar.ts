import { createReadStream } from 'node:fs'
import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { extract as createExtract, type Extract } from 'tar-stream'
import unbzip2 from 'unbzip2-stream'
import xz from 'xz-decompress'
import { isMirrorError } from '../../../errors.ts'
import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import type { OuterFormat } from './archive-format.ts'
import type { Spool, SpoolPlace, UnpackLimits } from './spool.ts'

type TarEntry = Extract extends AsyncIterable<infer Entry> ? Entry : never
type Decoder = (source: Readable) => Readable | Transform

const READ_BYTES = 256 * 1024

const DECODERS: Readonly<Record<Exclude<OuterFormat, 'zip' | 'tar'>, Decoder>> = {
  gzip: () => createGunzip(),
  zstd: () => createZstdDecompress(),
  bzip2: () => unbzip2() as unknown as Transform,
  xz: (source) => {
    const packed = Readable.toWeb(source) as unknown as ConstructorParameters<typeof xz.XzReadableStream>[0]
    return Readable.fromWeb(new xz.XzReadableStream(packed) as unknown as Parameters<typeof Readable.fromWeb>[0])
  },
}

/**
 * Unpacks a tar, plain or compressed, into the spool.
 * @throws MirrorError `MODULE_INVALID`
 */
export async function unpackTar(
  path: string,
  format: Exclude<OuterFormat, 'zip'>,
  { spool, limits }: { spool: Spool; limits: UnpackLimits },
): Promise<SourceEntry<SpoolPlace>[]> {
  const extract = createExtract()
  const done = decode(createReadStream(path, { highWaterMark: READ_BYTES }), format, extract)
  done.catch(() => undefined)
  const entries: SourceEntry<SpoolPlace>[] = []
  try {
    for await (const entry of extract) {
      const found = await readEntry(entry, spool)
      if (found !== undefined) entries.push(found)
      if (entries.length > limits.files) throw invalidModule(`it has more than ${limits.files} files`)
    }
    await done
  } catch (error) {
    extract.destroy()
    // Decoders of damaged archives say the oddest things.
    throw isMirrorError(error) ? error : invalidModule(`its archive (${format}) is damaged`, error)
  }
  return entries
}

async function decode(source: Readable, format: Exclude<OuterFormat, 'zip'>, extract: Extract): Promise<void> {
  if (format === 'tar') return await pipeline(source, extract)
  // The decoder of xz takes the source over; all others are a stream in between.
  if (format === 'xz') return await pipeline(DECODERS.xz(source), extract)
  return await pipeline(source, DECODERS[format](source) as Transform, extract)
}

/** Undefined for what is neither file nor link: folders come by themselves. */
async function readEntry(entry: TarEntry, spool: Spool): Promise<SourceEntry<SpoolPlace> | undefined> {
  const { name: path, type, mode, linkname } = entry.header
  if (type === 'file' || type === 'contiguous-file') {
    const { offset, size } = await spool.add(entry as AsyncIterable<Uint8Array>)
    return { kind: 'file', path, executable: (mode & 0o111) !== 0, size, content: { offset } }
  }
  entry.resume()
  if (type === 'directory') return undefined
  if (type === 'symlink' || type === 'link') {
    return { kind: 'link', path, target: linkname, from: type === 'link' ? 'root' : 'folder' }
  }
  throw invalidModule(`${JSON.stringify(path.slice(0, 120))} is neither a file nor a link (${String(type)})`)
}
