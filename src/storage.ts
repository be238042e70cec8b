import { relative, resolve } from 'node:path'
import type { Config } from './config/schema.ts'
import { MirrorError } from './errors.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { Space } from './mirror/space/space.ts'
import type { BlobStore } from './store/blob-store.ts'
import { CheckedBlobStore } from './store/checked-blob-store.ts'
import { type DataFolder, openDataFolder } from './store/disk/data-folder.ts'
import { openStateFolder } from './store/disk/state-folder.ts'
import { LeasedBlobStore } from './store/leased-blob-store.ts'
import type { StateStore } from './store/state-store.ts'

/** What the storage is made of; all of it belongs to the caller. */
export interface StorageParts {
  readonly config: Config
  readonly metrics: Metrics
  /** Wraps the blobs of the disk; tests inject faults. */
  readonly wrapBlobs?: ((blobs: BlobStore) => BlobStore) | undefined
  /** Another process took over the data folder: this one must not write any more. */
  readonly onLost: (error: MirrorError) => void
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** Everything that is on the disk. Whoever opened it closes it. */
export interface Storage extends AsyncDisposable {
  readonly folder: DataFolder
  /** What this one instance keeps for itself. */
  readonly state: StateStore
  /** The blobs as everybody uses them: counted, checked, leased. */
  readonly blobs: BlobStore
  /** The part of `blobs` that hashes. */
  readonly checked: CheckedBlobStore
  readonly space: Space
  readonly pins: PinnedSets
}

/** Opens the two folders. @throws MirrorError `CONFIGURATION`, `STORAGE_FULL`, `STORAGE_FAILED`; nothing stays open then */
export async function openStorage(parts: StorageParts): Promise<Storage> {
  const { config, metrics, onLost, now, log } = parts
  const { dataDir, stateDir, archives } = config
  await using opened = new AsyncDisposableStack()
  const folder = opened.use(await openDataFolder({ dataDir, log, onLost: () => onLost(lostFolder(dataDir)) }))
  const hasLock = relative(resolve(dataDir), resolve(stateDir)).startsWith('..')
  const state = opened.use(
    await openStateFolder({ stateDir, log, hasLock, onLost: () => onLost(lostFolder(stateDir)) }),
  )
  const pins = await PinnedSets.open({ records: state.records, now, log })
  const space = createSpace(parts, folder)
  const checked = new CheckedBlobStore(space.blobs, {
    recheckAfterMs: archives.recheckAfter,
    now,
    onDamaged: (digest) => {
      metrics.storage.damaged()
      log.error({ digest }, 'a stored file was damaged; it was set aside and will be fetched again')
    },
  })
  const blobs = new LeasedBlobStore(checked, space.leases)
  const resources = opened.move()
  return { folder, state, blobs, checked, space, pins, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Sealed, nothing comes in and nothing is evicted. */
function createSpace({ config, metrics, wrapBlobs, shutdown, log }: StorageParts, folder: DataFolder): Space {
  const { maxSize, minFree } = config.archives
  const isSealed = config.mode === 'sealed'
  const space = new Space({
    blobs: wrapBlobs?.(folder.blobs) ?? folder.blobs,
    limits: isSealed ? { maxSize: undefined, minFree: undefined } : { maxSize, minFree },
    diskFree: () => folder.freeBytes(),
    shutdown,
    log,
    onChange: () => {
      const { size, diskBytes } = space.blobs.stored.sum
      metrics.storage.cacheBytes.set(size)
      metrics.storage.showDisk({ used: space.blobs.stored.isMeasured ? diskBytes : undefined })
    },
    onRefused: () => metrics.storage.spaceRefused(),
  })
  metrics.onRead(() => metrics.storage.showDisk({ reserved: space.ledger.reserved, limit: maxSize, minFree }))
  return space
}

function lostFolder(folder: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `another process took over ${folder}; this one must not write any more`, {
    operation: 'lock',
  })
}
