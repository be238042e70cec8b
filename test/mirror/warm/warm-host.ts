import { join } from 'node:path'
import { loadConfig } from '../../../src/config/load.ts'
import type { Log } from '../../../src/log.ts'
import { Metrics } from '../../../src/metrics.ts'
import { OriginUpstreams } from '../../../src/origin-upstreams.ts'
import { createOriginAllowList } from '../../../src/policy/origin-allow-list.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { openStateFolder } from '../../../src/store/disk/state-folder.ts'
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
  const observer = { answered: () => undefined, received: () => undefined, retried: () => undefined }
  const { metadata: memory, workspaces } = data
  const parts = { config, memory, workspaces, observer, instanceId: 'test', userAgent: 'test', now, log }
  const upstreams = config.mode === 'sealed' ? undefined : opened.use(await OriginUpstreams.create(parts))
  const { recheckAfter: recheckAfterMs } = config.archives
  const useCases = createUseCases({
    ...{ config, folder: data, state, upstreams, now, log },
    blobs: new CheckedBlobStore(data.blobs, {
      recheckAfterMs,
      now,
      onSizeChange: () => undefined,
      onDamaged: () => undefined,
    }),
    metrics: new Metrics(Object.keys(config.origins)),
    view: { id: 'test', allowsOrigin: createOriginAllowList(Object.keys(config.origins)) },
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
