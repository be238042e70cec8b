import type { BlobStat, BlobStore, IncomingBlob, OpenBlob } from '../../store/blob-store.ts'
import { sha256 } from '../../store/digest.ts'
import { WrappedIncomingBlob } from '../../store/wrapped-incoming-blob.ts'
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

class CountedIncomingBlob extends WrappedIncomingBlob {
  readonly #reservation: SpaceReservation
  readonly #stored: StoredBytes

  constructor(inner: IncomingBlob, parts: { reservation: SpaceReservation; stored: StoredBytes }) {
    super(inner)
    this.#reservation = parts.reservation
    this.#stored = parts.stored
  }

  override async expect(bytes: number): Promise<void> {
    await this.#reservation.expect(bytes)
    await super.expect(bytes)
  }

  override async append(bytes: Uint8Array): Promise<void> {
    const size = this.size + bytes.length
    if (size > this.#reservation.bytes) await this.#reservation.cover(size)
    await super.append(bytes)
    this.#reservation.wrote(this.size)
  }

  override async restart(): Promise<void> {
    await super.restart()
    this.#reservation.wrote(0)
  }

  /** What was reserved becomes what is stored, in one turn. What failed keeps its space until it is disposed of. */
  override async commit(): Promise<BlobStat> {
    let done = false
    const commit = async (): Promise<BlobStat> => {
      const stat = await super.commit()
      done = true
      return stat
    }
    return await this.#stored.change(this.digest(), commit, () => {
      if (done) this.#reservation[Symbol.dispose]()
    })
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    using _reservation = this.#reservation
    await super[Symbol.asyncDispose]()
  }
}
