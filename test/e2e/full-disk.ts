import { MirrorError } from '../../src/errors.ts'
import type { BlobStore, IncomingBlob } from '../../src/store/blob-store.ts'

/** Where a full disk shows first. */
export type Place = 'create' | 'append' | 'commit' | 'put'

/** A blob store on a disk that is full at one place, until it has space again. */
export class FullDisk {
  full = false
  readonly #place: Place

  constructor(place: Place) {
    this.#place = place
  }

  wrap(blobs: BlobStore): BlobStore {
    return {
      create: async () => {
        this.#fail('create')
        return this.#wrapIncoming(await blobs.create())
      },
      put: async (bytes) => {
        this.#fail('put')
        return blobs.put(bytes)
      },
      stat: (digest) => blobs.stat(digest),
      open: (digest) => blobs.open(digest),
      read: (digest) => blobs.read(digest),
      localFile: (digest) => blobs.localFile(digest),
      setAside: (digest) => blobs.setAside(digest),
      delete: (digest) => blobs.delete(digest),
      list: (prefix) => blobs.list(prefix),
    }
  }

  #wrapIncoming(incoming: IncomingBlob): IncomingBlob {
    return {
      get size() {
        return incoming.size
      },
      expect: (bytes) => incoming.expect(bytes),
      append: async (bytes) => {
        if (incoming.size + bytes.length > 300_000) this.#fail('append')
        await incoming.append(bytes)
      },
      restart: () => incoming.restart(),
      follow: () => incoming.follow(),
      digest: () => incoming.digest(),
      commit: async () => {
        this.#fail('commit')
        return incoming.commit()
      },
      [Symbol.asyncDispose]: () => incoming[Symbol.asyncDispose](),
    }
  }

  #fail(place: Place): void {
    if (!this.full || place !== this.#place) return
    throw new MirrorError('STORAGE_FULL', 'Cannot write: the disk is full.', { operation: 'write' })
  }
}
