import type { ReleaseClaim } from '../protocol/release-claim.ts'
import type { ModuleUpstream } from './module-upstream.ts'
import type { OriginWatch } from './origin-states.ts'
import type { ArchivePiece, ArchiveStream, ProviderUpstream } from './provider-upstream.ts'

/** The same upstream, that tells how each question to it ended. */
export function watchProviders(upstream: ProviderUpstream, watch: OriginWatch): ProviderUpstream {
  return {
    versions: (address, request) => watched(watch, upstream.versions(address, request)),
    async release(query, request) {
      try {
        const claim = await upstream.release(query, request)
        tellOfRelease(watch, claim)
        return claim
      } catch (error) {
        watch.failed(error)
        throw error
      }
    },
    async openArchive(published, request) {
      return new WatchedArchive(await watched(watch, upstream.openArchive(published, request)), watch)
    },
  }
}

/** As `watchProviders`, for modules. */
export function watchModules(upstream: ModuleUpstream, watch: OriginWatch): ModuleUpstream {
  return {
    versions: (address, request) => watched(watch, upstream.versions(address, request)),
    locate: (address, spelling, request) => watched(watch, upstream.locate(address, spelling, request)),
    open: (location, request) => watched(watch, upstream.open(location, request)),
    currentCommit: (location, request) => watched(watch, upstream.currentCommit(location, request)),
  }
}

async function watched<T>(watch: OriginWatch, work: Promise<T>): Promise<T> {
  try {
    const result = await work
    watch.answered()
    return result
  } catch (error) {
    watch.failed(error)
    throw error
  }
}

/** Failures of single platforms are part of a claim. */
function tellOfRelease(watch: OriginWatch, { platforms }: ReleaseClaim): void {
  const failure = platforms.find((platform) => platform.kind === 'failed')
  if (failure === undefined || platforms.some(({ kind }) => kind === 'published')) watch.answered()
  else watch.failed(failure.error)
}

class WatchedArchive implements ArchiveStream {
  readonly #stream: ArchiveStream
  readonly #watch: OriginWatch

  constructor(stream: ArchiveStream, watch: OriginWatch) {
    this.#stream = stream
    this.#watch = watch
  }

  get size(): number | undefined {
    return this.#stream.size
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ArchivePiece, void, undefined> {
    try {
      for await (const piece of this.#stream) yield piece
    } catch (error) {
      this.#watch.failed(error)
      throw error
    }
  }
}
