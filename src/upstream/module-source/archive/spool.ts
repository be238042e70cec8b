import type { FileHandle } from 'node:fs/promises'
import { invalidModule } from '../tree-layout.ts'

/** Where the bytes of a file lie in the spool. */
export interface SpoolPlace {
  readonly offset: number
}

/** How much may come out of an archive. */
export interface UnpackLimits {
  readonly unpackedBytes: number
  readonly files: number
}

/** Text of module repositories packs at most 30 times; a bomb a thousand times. */
const MAX_RATIO = 200
/** Below this no ratio is looked at. */
const HARMLESS_BYTES = 50_000_000

/** Writes every byte: a disk that is nearly full takes a part, and says so in no other way. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten
  }
}

/** Contents of all files of an archive, one behind the other in one file: they can be read in any order later. */
export class Spool {
  readonly #handle: FileHandle
  readonly #limits: UnpackLimits
  readonly #packedBytes: number
  #size = 0

  /** The handle stays the caller's. `packedBytes` is the size of the archive. */
  constructor(handle: FileHandle, { limits, packedBytes }: { limits: UnpackLimits; packedBytes: number }) {
    this.#handle = handle
    this.#limits = limits
    this.#packedBytes = packedBytes
  }

  /** Appends one file. @throws MirrorError `MODULE_INVALID` beyond the limits */
  async add(content: AsyncIterable<Uint8Array>): Promise<SpoolPlace & { size: number }> {
    const offset = this.#size
    for await (const bytes of content) {
      this.#size += bytes.length
      this.#assertWithinLimits()
      await writeAll(this.#handle, bytes, this.#size - bytes.length)
    }
    return { offset, size: this.#size - offset }
  }

  #assertWithinLimits(): void {
    const { unpackedBytes } = this.#limits
    if (this.#size > unpackedBytes) throw invalidModule(`it unpacks to more than ${unpackedBytes} bytes`)
    if (this.#size > HARMLESS_BYTES && this.#size > MAX_RATIO * this.#packedBytes) {
      throw invalidModule(`it unpacks to more than ${MAX_RATIO} times its size`)
    }
  }
}
