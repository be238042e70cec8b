import { join } from 'node:path'
import { loadConfig } from '../../../src/config/load.ts'
import type { Log } from '../../../src/log.ts'
import { Metrics } from '../../../src/metrics/metrics.ts'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { Space } from '../../../src/mirror/space/space.ts'
import { OriginUpstreams } from '../../../src/origin-upstreams.ts'
import { createOriginAllowList } from '../../../src/policy/origin-allow-list.ts'
import { findOriginKey } from '../../../src/policy/origin-key.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { openStateFolder } from '../../../src/store/disk/state-folder.ts'
import { LeasedBlobStore } from '../../../src/store/leased-blob-store.ts'
import { OriginStates } from '../../../src/upstream/origin-states.ts'
import { createUseCases, type UseCases } from '../../../src/use-cases.ts'

/** The use cases of a mirror over real folders and a real origin, without a listener. Disposing ends them in good order. */
export interface WarmHost extends UseCases, AsyncDisposable {}

/** Opens the use cases that the configuration in `folder/config.yaml` describes; jobs of before are taken up. */
export async function openWarmHost(folder: string, log: Log): Promise<WarmHost> {
  const config = await loadConfig({ file: join(folder, 'config.yaml'), set: [], cwd: folder, env: {} })
  await using opened = new AsyncDisposableStack()
  const shutdown = new AbortController()
  const data = opened.use(await openDataFolder({ dataDir: config.dataDir, log, onLost: () => undefined }))
  const state = opened.use(await openStateFolder({ stateDir: config.stateDir, log }))
  const now = Date.now
  const keys = Object.keys(config.origins)
  const metrics = new Metrics({ origins: keys, perProvider: false })
  const origins = new OriginStates({ origins: config.origins, keyOf: (hostname) => findOriginKey(keys, hostname), now })
  const { metadata: memory, workspaces } = data
  const parts = { config, memory, workspaces, observer: metrics.upstream, states: origins, instanceId: 'test' }
  const upstreams =
    config.mode === 'sealed'
      ? undefined
      : opened.use(await OriginUpstreams.create({ ...parts, userAgent: 'test', now, log }))
  const space = new Space({
    ...{ blobs: data.blobs, limits: { maxSize: undefined, minFree: undefined }, diskFree: () => data.free(), log },
    ...{ shutdown: shutdown.signal, onChange: () => undefined },
  })
  const { recheckAfter: recheckAfterMs } = config.archives
  const checked = new CheckedBlobStore(space.blobs, { recheckAfterMs, now, onDamaged: () => undefined })
  const useCases = createUseCases({
    ...{ config, folder: data, state, upstreams, origins, space, checked, metrics, now, log },
    inventoryJournal: opened.use(await data.openJournal('inventory')),
    pins: await PinnedSets.open({ records: state.records, now, log }),
    blobs: new LeasedBlobStore(checked, space.leases),
    view: { id: 'test', allowsOrigin: createOriginAllowList(keys) },
    shutdown: shutdown.signal,
  })
  await useCases.jobs.resumeAll()
  const resources = opened.move()
  return {
    ...useCases,
    async [Symbol.asyncDispose]() {
      await using _ = resources
      void shutdown.abort()
      await useCases.close()
    },
  }
}
