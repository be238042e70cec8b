import type { BlobLeases } from './blob-leases.ts'
import type { BlobReader, BlobStat, BlobStore, IncomingBlob, OpenBlob } from './blob-store.ts'
import { sha256 } from './digest.ts'
import { WrappedIncomingBlob } from './wrapped-incoming-blob.ts'

/**
 * A blob store that leases every blob as long as somebody reads it or has just brought it in: an open blob, a local
 * file, a blob between its commit and the disposal of what brought it in, and all who follow it meanwhile. Nobody waits
 * for a lease, except while that very blob is being taken away. Deletions look at no lease: whoever makes space claims
 * first.
 */
export class LeasedBlobStore implements BlobStore {
  readonly #inner: BlobStore
  readonly #leases: BlobLeases

  constructor(inner: BlobStore, leases: BlobLeases) {
    this.#inner = inner
    this.#leases = leases
  }

  async create(): Promise<IncomingBlob> {
    return new LeasedIncomingBlob(await this.#inner.create(), this.#leases)
  }

  async put(bytes: Uint8Array): Promise<BlobStat> {
    using _lease = await this.#leases.lease(sha256(bytes))
    return await this.#inner.put(bytes)
  }

  stat(digest: string): Promise<BlobStat | undefined> {
    return this.#inner.stat(digest)
  }

  async open(digest: string): Promise<OpenBlob | undefined> {
    using stack = new DisposableStack()
    const lease = stack.use(await this.#leases.lease(digest))
    const blob = await this.#inner.open(digest)
    if (blob === undefined) return undefined
    stack.move()
    return new LeasedOpenBlob(blob, lease)
  }

  async read(digest: string): Promise<Buffer | undefined> {
    using _lease = await this.#leases.lease(digest)
    return await this.#inner.read(digest)
  }

  async localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
    using stack = new DisposableStack()
    const lease = stack.use(await this.#leases.lease(digest))
    const file = await this.#inner.localFile(digest)
    if (file === undefined) return undefined
    stack.move()
    return {
      path: file.path,
      [Symbol.asyncDispose]: async () => {
        using _lease = lease
        await file[Symbol.asyncDispose]()
      },
    }
  }

  setAside(digest: string): Promise<void> {
    return this.#inner.setAside(digest)
  }

  delete(digest: string): Promise<void> {
    return this.#inner.delete(digest)
  }

  list(prefix?: string): AsyncIterable<BlobStat> {
    return this.#inner.list(prefix)
  }
}

class LeasedOpenBlob implements OpenBlob {
  readonly #inner: OpenBlob
  readonly #lease: Disposable

  constructor(inner: OpenBlob, lease: Disposable) {
    this.#inner = inner
    this.#lease = lease
  }

  get digest(): string {
    return this.#inner.digest
  }

  get size(): number {
    return this.#inner.size
  }

  read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    return this.#inner.read(buffer, position, length)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _lease = this.#lease
    await this.#inner[Symbol.asyncDispose]()
  }
}

class LeasedIncomingBlob extends WrappedIncomingBlob {
  readonly #leases: BlobLeases
  #lease: Disposable | undefined
  /** Itself until it is disposed of, and all who follow. */
  #users = 1
  #disposed = false

  constructor(inner: IncomingBlob, leases: BlobLeases) {
    super(inner)
    this.#leases = leases
  }

  /** What is read may be the blob by then, under whatever name: its space is free only when nobody reads it. */
  override follow(): BlobReader {
    const reader = super.follow()
    this.#users += 1
    let open = true
    return {
      read: (buffer, position, length) => reader.read(buffer, position, length),
      [Symbol.asyncDispose]: async () => {
        await reader[Symbol.asyncDispose]()
        if (open) this.#leave()
        open = false
      },
    }
  }

  override async commit(): Promise<BlobStat> {
    this.#lease ??= await this.#leases.lease(this.digest())
    return await super.commit()
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]()
    if (!this.#disposed) this.#leave()
    this.#disposed = true
  }

  #leave(): void {
    this.#users -= 1
    if (this.#users === 0) this.#lease?.[Symbol.dispose]()
  }
}
