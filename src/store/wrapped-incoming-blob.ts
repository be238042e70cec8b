import type { BlobReader, BlobStat, IncomingBlob } from './blob-store.ts'

/** Hands everything to the blob within; stores that are put around another one override what they add to. */
export abstract class WrappedIncomingBlob implements IncomingBlob {
  protected readonly inner: IncomingBlob

  constructor(inner: IncomingBlob) {
    this.inner = inner
  }

  get size(): number {
    return this.inner.size
  }

  expect(bytes: number): Promise<void> {
    return this.inner.expect(bytes)
  }

  append(bytes: Uint8Array): Promise<void> {
    return this.inner.append(bytes)
  }

  restart(): Promise<void> {
    return this.inner.restart()
  }

  follow(): BlobReader {
    return this.inner.follow()
  }

  digest(): string {
    return this.inner.digest()
  }

  commit(): Promise<BlobStat> {
    return this.inner.commit()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.inner[Symbol.asyncDispose]()
  }
}
