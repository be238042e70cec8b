import { join } from 'node:path'
import { loadConfig } from '../../../src/config/load.ts'
import { readConfiguration, readLockFile } from '../../../src/hcl/hcl-reader.ts'
import type { Log } from '../../../src/log.ts'
import { Metrics } from '../../../src/metrics/metrics.ts'
import { ModuleCallsReader } from '../../../src/mirror/care/module-calls-reader.ts'
import { Jobs } from '../../../src/mirror/jobs/jobs.ts'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { Space } from '../../../src/mirror/space/space.ts'
import type { View } from '../../../src/mirror/view.ts'
import { Warm } from '../../../src/mirror/warm/warm.ts'
import { OriginUpstreams } from '../../../src/origin-upstreams.ts'
import { createOriginAllowList } from '../../../src/policy/origin-allow-list.ts'
import { findOriginKey } from '../../../src/policy/origin-key.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { openStateFolder } from '../../../src/store/disk/state-folder.ts'
import { OriginStates } from '../../../src/upstream/origin-states.ts'
import { createUseCases, type UseCases } from '../../../src/use-cases.ts'

/** The use cases of a mirror over real folders and a real origin, without a listener. Disposing ends them in good order. */
export interface WarmHost extends UseCases, AsyncDisposable {
  readonly jobs: Jobs
  readonly warm: Warm
}

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
  const origins = new OriginStates({ origins: config.origins, keyOf: (host) => findOriginKey(keys, host), now })
  const { metadata: memory, workspaces } = data
  const told = { observer: metrics.upstream, states: origins, instanceId: 'test', userAgent: 'test' }
  const sealed = config.mode === 'sealed'
  const upstreams = sealed
    ? undefined
    : opened.use(await OriginUpstreams.create({ config, memory, workspaces, ...told, now, log }))
  const { recheckAfter: recheckAfterMs } = config.archives
  const space = new Space({
    ...{ blobs: data.blobs, limits: { maxSize: undefined, minFree: undefined }, diskFree: () => data.freeBytes() },
    ...{ shutdown: shutdown.signal, onChange: () => undefined, log },
  })
  const blobs = new CheckedBlobStore(space.blobs, { recheckAfterMs, now, onDamaged: () => undefined })
  const pins = await PinnedSets.open({ records: state.records, now, log })
  const useCases = await createUseCases({
    ...{ config, folder: data, state, blobs, space, pins, metrics, origins, upstreams, now, log },
    shutdown: shutdown.signal,
  })
  const view: View = { id: 'test', allowsOrigin: createOriginAllowList(keys) }
  const { records } = data
  const calls = new ModuleCallsReader({ records, blobs, readConfiguration, shutdown: shutdown.signal, log })
  const warm = new Warm({
    ...{ ...useCases, view, sealed, readLockFile, readConfiguration, defaultOrigin: config.defaultOrigin, log },
    readCalls: (record, subfolder) => calls.read(record, subfolder),
  })
  const jobs = new Jobs({ store: state, clientWork: useCases.clientWork, now, log })
  jobs.register(warm.kind)
  void useCases.takeStock()
  await jobs.resumeAll()
  const resources = opened.move()
  return {
    ...{ ...useCases, jobs, warm },
    async [Symbol.asyncDispose]() {
      await using _ = resources
      void shutdown.abort()
      await jobs.close()
      await useCases.close()
    },
  }
}
