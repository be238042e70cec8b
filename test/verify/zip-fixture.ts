import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type Options, ZipFile } from 'yazl'

/** A folder for files of one test, gone at the end of the scope. */
export interface Folder extends AsyncDisposable {
  readonly path: string
  /** Returns the path of the file. */
  write(name: string, bytes: Buffer): Promise<string>
}

export async function openFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'terramirror-zip-'))
  return {
    path,
    async write(name, bytes) {
      await writeFile(join(path, name), bytes)
      return join(path, name)
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

/** A zip of these entries in this order; a name that ends in `/` is a directory. */
export async function makeZip(
  entries: readonly (readonly [name: string, content: string])[],
  options: Partial<Options> & { readonly streamed?: boolean } = {},
): Promise<Buffer> {
  const { streamed = false, ...entryOptions } = options
  const zip = new ZipFile()
  for (const [name, content] of entries) {
    if (name.endsWith('/')) zip.addEmptyDirectory(name)
    // Of unknown size beforehand, so that a data descriptor follows the data.
    else if (streamed) zip.addReadStream(Readable.from([Buffer.from(content)]), name, entryOptions)
    else zip.addBuffer(Buffer.from(content), name, entryOptions)
  }
  zip.end()
  return buffer(zip.outputStream)
}

/** A copy in which every place of `from` holds `to`, of the same length. */
export function patch(bytes: Buffer, from: Buffer, to: Buffer): Buffer {
  const patched = Buffer.from(bytes)
  for (let at = patched.indexOf(from); at >= 0; at = patched.indexOf(from, at + 1)) to.copy(patched, at)
  return patched
}
