import { createCipheriv, createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'
import { type Body, bufferBody, fileBody } from './reply.ts'

/** A provider archive as the origin serves it. */
export interface ProviderArchive {
  readonly body: Body
  /** Lower-case hexadecimal SHA-256 of the zip. */
  readonly sha256: string
  /** `h1:` hash of the content, computed from the files before they were zipped; undefined for a foreign archive. */
  readonly h1: string | undefined
}

/** Zips `files` (name to content). The same files give the same bytes. */
export async function zipArchive(files: Readonly<Record<string, Buffer>>): Promise<ProviderArchive> {
  const zip = new ZipFile()
  for (const [name, content] of Object.entries(files)) {
    zip.addBuffer(content, name, entryOptions(name))
  }
  zip.end()
  const bytes = await buffer(zip.outputStream)
  const digests = Object.entries(files).map(([name, content]): FileDigest => [name, sha256(content)])
  return { body: bufferBody(bytes), sha256: sha256(bytes), h1: hashOne(digests) }
}

/** A ready archive from memory or disk. It need not be a zip at all. */
export async function readyArchive(source: Buffer | { readonly path: string }): Promise<ProviderArchive> {
  if (Buffer.isBuffer(source)) return { body: bufferBody(source), sha256: sha256(source), h1: undefined }
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(source.path)) hash.update(chunk)
  return {
    body: fileBody(source.path, (await stat(source.path)).size),
    sha256: hash.digest('hex'),
    h1: undefined,
  }
}

/**
 * Writes a zip with one incompressible file of `bytes` bytes to `path`, as a stream: its size never sits in memory.
 * The same `seed` gives the same bytes.
 */
export async function writeLargeArchive(
  path: string,
  options: { readonly filename: string; readonly bytes: number; readonly seed: string },
): Promise<ProviderArchive> {
  const content = createHash('sha256')
  const archive = createHash('sha256')
  const zip = new ZipFile()
  const source = Readable.from(tap(incompressibleBytes(options.seed, options.bytes), content))
  zip.addReadStream(source, options.filename, {
    ...entryOptions(options.filename),
    compress: false,
    size: options.bytes,
  })
  zip.end()
  await pipeline(tap(zip.outputStream, archive), createWriteStream(path))
  return {
    body: fileBody(path, (await stat(path)).size),
    sha256: archive.digest('hex'),
    h1: hashOne([[options.filename, content.digest('hex')]]),
  }
}

type FileDigest = readonly [name: string, hexSha256: string]

/** The `h1:` of Go's dirhash: SHA-256 over sorted lines "hex digest, two spaces, name, newline" (client-contract A25). */
function hashOne(digests: readonly FileDigest[]): string {
  const lines = digests.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return `h1:${createHash('sha256')
    .update(lines.map(([name, hex]) => `${hex}  ${name}\n`).join(''))
    .digest('base64')}`
}

function entryOptions(name: string): { mtime: Date; mode: number } {
  const executable = name.startsWith('terraform-provider-')
  return { mtime: new Date('2024-01-01T00:00:00Z'), mode: executable ? 0o100755 : 0o100644 }
}

/** The key stream of AES-CTR: fast, repeatable and without a pattern to compress. */
async function* incompressibleBytes(seed: string, bytes: number): AsyncGenerator<Buffer> {
  const cipher = createCipheriv('aes-256-ctr', createHash('sha256').update(seed).digest(), Buffer.alloc(16))
  const zeros = Buffer.alloc(256 * 1024)
  for (let left = bytes; left > 0; left -= zeros.length) {
    yield cipher.update(left < zeros.length ? zeros.subarray(0, left) : zeros)
  }
}

async function* tap(chunks: AsyncIterable<Buffer | string>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    hash.update(bytes)
    yield bytes
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
