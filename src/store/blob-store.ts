/** Keeps bytes under the SHA-256 of their content. Knows nothing of Terraform. One conformance suite tests every implementation. */

/** Facts about one stored blob. */
export interface BlobStat {
  /** Lower-case hexadecimal. */
  readonly digest: string
  readonly size: number
  /** What it takes of the disk: whole blocks, so more than `size` as a rule; less where the disk compresses. */
  readonly diskBytes: number
  /** When it was stored, or last touched from outside. Milliseconds since 1970. */
  readonly modifiedAt: number
  /** Changes whenever the stored bytes were touched from outside in a way that the file system shows. */
  readonly fingerprint: string
}

/** Reads bytes by their position. The opener disposes of it. */
export interface BlobReader extends AsyncDisposable {
  /**
   * Reads up to `length` bytes at `position` into `buffer` from its start; returns the count, 0 at the end.
   * @throws MirrorError `STORAGE_FAILED`
   */
  read(buffer: Uint8Array, position: number, length: number): Promise<number>
}

/** An open blob. */
export interface OpenBlob extends BlobReader {
  readonly digest: string
  readonly size: number
}

/**
 * Bytes on their way in: hashed as they come, visible under no served name. Disposing without `commit` removes them.
 * Calls must not overlap.
 */
export interface IncomingBlob extends AsyncDisposable {
  /** Bytes so far. */
  readonly size: number
  /**
   * Tells how many bytes will come in all, where that is known: what can never fit is refused before it comes.
   * @throws MirrorError `STORAGE_FULL`
   */
  expect(bytes: number): Promise<void>
  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  append(bytes: Uint8Array): Promise<void>
  /** Drops all bytes so far and starts again. @throws MirrorError `STORAGE_FAILED` */
  restart(): Promise<void>
  /**
   * A reader of the bytes since the last `restart`: those that were appended, and those that will be; 0 says that there
   * are no more as yet. It never sees bytes of another start, and stays usable, whatever becomes of them, until it is
   * disposed of. Nobody has verified what it reads.
   * @throws MirrorError `STORAGE_FAILED` after commit or disposal
   */
  follow(): BlobReader
  /** The digest of all bytes so far, lower-case hexadecimal. No `append` may follow. */
  digest(): string
  /**
   * Makes the bytes durable under their digest. If the digest is held already, the held copy stays, unless its size is
   * wrong: then it is replaced.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  commit(): Promise<BlobStat>
}

/** Blobs by digest. `put` and `commit` are idempotent: equal bytes are one blob. */
export interface BlobStore {
  /** Begins a new blob. The caller disposes of it. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  create(): Promise<IncomingBlob>
  /** Stores small bytes whole. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  put(bytes: Uint8Array): Promise<BlobStat>
  /** @throws MirrorError `STORAGE_FAILED` */
  stat(digest: string): Promise<BlobStat | undefined>
  /** Undefined if not held. @throws MirrorError `STORAGE_FAILED` */
  open(digest: string): Promise<OpenBlob | undefined>
  /** The whole content of a small blob (evidence), checked against its digest; undefined if not held or damaged. @throws MirrorError `STORAGE_FAILED` */
  read(digest: string): Promise<Buffer | undefined>
  /**
   * A path under which the blob can be read by a worker, valid until disposed; undefined if not held. The file must
   * not be changed.
   */
  localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined>
  /** Takes a damaged blob out of service, keeping its bytes aside as evidence. @throws MirrorError `STORAGE_FAILED` */
  setAside(digest: string): Promise<void>
  /** Removes a blob; fine if it is not held. @throws MirrorError `STORAGE_FAILED` */
  delete(digest: string): Promise<void>
  /** All blobs, or those whose digest begins with `prefix`, in no promised order. */
  list(prefix?: string): AsyncIterable<BlobStat>
}
