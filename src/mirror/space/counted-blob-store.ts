import type { BlobReader, BlobStat, BlobStore, IncomingBlob, OpenBlob } from '../../store/blob-store.ts'
import { sha256 } from '../../store/digest.ts'
import type { SpaceLedger } from './space-ledger.ts'
import type { SpaceReservation } from './space-reservation.ts'
import { StoredBytes } from './stored-bytes.ts'

/**
 * A blob store that counts what it keeps, and lets nothing come in for which a `SpaceLedger` has no space. Small bytes
 * that come whole (`put`: evidence) are counted and never refused: without them nothing could be recorded.
 */
export class CountedBlobStore implements BlobStore {
  readonly stored: StoredBytes
  readonly #inner: BlobStore
  readonly #ledger: SpaceLedger

  /** `onChange` is called after every change of what is stored. */
  constructor(inner: BlobStore, ledger: SpaceLedger, onChange: () => void = () => undefined) {
    this.#inner = inner
    this.#ledger = ledger
    this.stored = new StoredBytes(inner, () => {
      ledger.setUsed(this.stored.sum.diskBytes, { isWhole: this.stored.isMeasured })
      onChange()
    })
  }

  /** Waits for space for the first bytes, as `append` does for the next ones. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`, `SHUTTING_DOWN` */
  async create(): Promise<IncomingBlob> {
    using stack = new DisposableStack()
    const reservation = stack.use(await this.#ledger.reserve())
    const incoming = await this.#inner.create()
    stack.move()
    return new CountedIncomingBlob(incoming, { reservation, stored: this.stored })
  }

  put(bytes: Uint8Array): Promise<BlobStat> {
    return this.stored.change(sha256(bytes), () => this.#inner.put(bytes))
  }

  stat(digest: string): Promise<BlobStat | undefined> {
    return this.#inner.stat(digest)
  }

  open(digest: string): Promise<OpenBlob | undefined> {
    return this.#inner.open(digest)
  }

  read(digest: string): Promise<Buffer | undefined> {
    return this.#inner.read(digest)
  }

  localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
    return this.#inner.localFile(digest)
  }

  setAside(digest: string): Promise<void> {
    return this.stored.change(digest, () => this.#inner.setAside(digest))
  }

  delete(digest: string): Promise<void> {
    return this.stored.change(digest, () => this.#inner.delete(digest))
  }

  list(prefix?: string): AsyncIterable<BlobStat> {
    return this.#inner.list(prefix)
  }
}

class CountedIncomingBlob implements IncomingBlob {
  readonly #inner: IncomingBlob
  readonly #reservation: SpaceReservation
  readonly #stored: StoredBytes

  constructor(inner: IncomingBlob, parts: { reservation: SpaceReservation; stored: StoredBytes }) {
    this.#inner = inner
    this.#reservation = parts.reservation
    this.#stored = parts.stored
  }

  get size(): number {
    return this.#inner.size
  }

  async expect(bytes: number): Promise<void> {
    await this.#reservation.expect(bytes)
    await this.#inner.expect(bytes)
  }

  async append(bytes: Uint8Array): Promise<void> {
    const size = this.#inner.size + bytes.length
    if (size > this.#reservation.bytes) await this.#reservation.cover(size)
    await this.#inner.append(bytes)
    this.#reservation.wrote(this.#inner.size)
  }

  async restart(): Promise<void> {
    await this.#inner.restart()
    this.#reservation.wrote(0)
  }

  follow(): BlobReader {
    return this.#inner.follow()
  }

  digest(): string {
    return this.#inner.digest()
  }

  /** What was reserved becomes what is stored, in one turn. What failed keeps its space until it is disposed of. */
  async commit(): Promise<BlobStat> {
    let done = false
    const commit = async (): Promise<BlobStat> => {
      const stat = await this.#inner.commit()
      done = true
      return stat
    }
    return await this.#stored.change(this.digest(), commit, () => {
      if (done) this.#reservation[Symbol.dispose]()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _reservation = this.#reservation
    await this.#inner[Symbol.asyncDispose]()
  }
}
