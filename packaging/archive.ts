import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { PROJECT } from './bundle.ts'

const GZIP_HEADER_BYTES = 10

/** What to pack. */
export interface ArchiveOptions {
  readonly parent: string
  /** A folder in `parent`, and the one at the top of the archive. */
  readonly name: string
  /** Time of every entry, in seconds. */
  readonly time: number
  /** How hard gzip tries: 1 to 9. */
  readonly level?: number
}

/**
 * Packs the folder `name` inside `parent` into the gzipped tar `file`. Equal files give equal bytes: sorted, owned by
 * root, with plain modes and one time, packed by the zlib of this Node.js. Needs GNU tar.
 * @throws Error with what tar said
 */
export async function writeArchive(file: string, { parent, name, time, level = 6 }: ArchiveOptions): Promise<void> {
  const tar = spawn('tar', [
    ...['--create', '--sort=name', '--format=ustar', '--owner=0', '--group=0', '--numeric-owner'],
    ...['--mode=u=rwX,go=rX', `--mtime=@${time}`, '--directory', parent, name],
  ])
  const ended = once(tar, 'close')
  let complaint = ''
  tar.stderr.on('data', (text) => {
    complaint += text
  })
  await pipeline(tar.stdout, createGzip({ level }), new PlainHeader(), createWriteStream(file))
  const [code] = await ended
  if (code !== 0) throw new Error(`tar ended with ${code}: ${complaint}`)
}

/** A gzip file begins with a time and the kind of machine that made it (RFC 1952, 2.3.1): neither is ours to tell. */
class PlainHeader extends Transform {
  #position = 0

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let at = 4; at < GZIP_HEADER_BYTES; at++) {
      const inChunk = at - this.#position
      // 255 is "unknown machine".
      if (inChunk >= 0 && inChunk < chunk.length) chunk[inChunk] = at === 9 ? 255 : 0
    }
    this.#position += chunk.length
    done(null, chunk)
  }
}

/** The time that all files of a package get, in seconds: `SOURCE_DATE_EPOCH`, else that of the last commit. */
export async function findBuildTime(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const given = env.SOURCE_DATE_EPOCH
  if (given !== undefined && !/^\d{1,11}$/.test(given)) throw new Error('SOURCE_DATE_EPOCH is not a number of seconds')
  if (given !== undefined) return Number(given)
  try {
    const { stdout } = await promisify(execFile)('git', ['log', '-1', '--format=%ct'], { cwd: PROJECT })
    return Number(stdout)
  } catch (error) {
    throw new Error('there is no commit to take the time from: set SOURCE_DATE_EPOCH', { cause: error })
  }
}

/** SHA-256 of a file, in hexadecimal. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
