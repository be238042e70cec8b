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
type Decoder = (source: Readable, maxBacklog: number) => Readable | Transform

const READ_BYTES = 256 * 1024
/** Text packs thirty times: what comes out at one go of blocks of 900 KB is a third of this. */
const MAX_BACKLOG = 96 * 1024 * 1024

const DECODERS: Readonly<Record<Exclude<OuterFormat, 'zip' | 'tar'>, Decoder>> = {
  gzip: () => createGunzip(),
  zstd: () => createZstdDecompress(),
  bzip2: (_source, maxBacklog) => boundBacklog(unbzip2() as unknown as Transform, maxBacklog),
  xz: (source) => {
    const packed = Readable.toWeb(source) as unknown as ConstructorParameters<typeof xz.XzReadableStream>[0]
    return Readable.fromWeb(new xz.XzReadableStream(packed) as unknown as Parameters<typeof Readable.fromWeb>[0])
  },
}

/**
 * Unpacks a tar, plain or compressed, into the spool. Of what a decoder makes, at most `maxBacklog` bytes may wait.
 * @throws MirrorError `MODULE_INVALID`
 */
export async function unpackTar(
  path: string,
  format: Exclude<OuterFormat, 'zip'>,
  { spool, limits, maxBacklog = MAX_BACKLOG }: { spool: Spool; limits: UnpackLimits; maxBacklog?: number },
): Promise<SourceEntry<SpoolPlace>[]> {
  const extract = createExtract()
  const done = decode(createReadStream(path, { highWaterMark: READ_BYTES }), { format, extract, maxBacklog })
  done.catch(() => undefined)
  const entries: SourceEntry<SpoolPlace>[] = []
  try {
    let count = 0
    for await (const entry of extract) {
      const found = await readEntry(entry, spool)
      if (found !== undefined) entries.push(found)
      if (entries.length > limits.files) throw invalidModule(`it has more than ${limits.files} files`)
      // Folders too: they make no file, but take time.
      if (++count > 2 * limits.files) throw invalidModule(`it has more than ${limits.files} files and folders`)
    }
    await done
  } catch (error) {
    extract.destroy()
    // Decoders of damaged archives say the oddest things.
    throw isMirrorError(error) ? error : invalidModule(`its archive (${format}) is damaged`, error)
  }
  return entries
}

/** This decoder heeds no back pressure: from a bomb of some hundred bytes it makes gigabytes at one go. */
function boundBacklog(decoder: Transform, maxBacklog: number): Transform {
  const through = decoder as Transform & { queue(bytes: Uint8Array | null): unknown }
  const queue = through.queue
  let waiting = 0
  decoder.on('data', (bytes: Uint8Array) => {
    waiting -= bytes.length
  })
  // It hands on what is thrown here as its own error, and stops.
  through.queue = (bytes) => {
    waiting += bytes?.length ?? 0
    if (waiting > maxBacklog) throw invalidModule('its archive (bzip2) holds too much in too few bytes')
    return queue.call(decoder, bytes)
  }
  return decoder
}

async function decode(
  source: Readable,
  { format, extract, maxBacklog }: { format: Exclude<OuterFormat, 'zip'>; extract: Extract; maxBacklog: number },
): Promise<void> {
  if (format === 'tar') return await pipeline(source, extract)
  // The decoder of xz takes the source over; all others are a stream in between.
  if (format === 'xz') return await pipeline(DECODERS.xz(source, maxBacklog), extract)
  return await pipeline(source, DECODERS[format](source, maxBacklog) as Transform, extract)
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
