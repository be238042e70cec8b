import { statfs } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { OriginState } from '../upstream/origin-states.ts'
import type { Metrics } from './metrics.ts'

/** What is looked at each time that the metrics are read. */
export interface LiveValues {
  readonly isReady: () => boolean
  readonly origins: () => readonly OriginState[]
  /** How many packages or modules are held; undefined while they are not all counted. */
  readonly held: (kind: 'package' | 'module') => number | undefined
  /** PEM of what clients see and trust, as it is now; undefined where there is none of ours. */
  readonly certificates: () => { readonly server: string | undefined; readonly authority: string | undefined }
  readonly dataDir: string
}

/** A file system that does not answer must not hold up the metrics. */
const STATFS_MS = 1_000

/** Shows all of it in the metrics from now on. */
export function showLiveValues(metrics: Metrics, values: LiveValues): void {
  const { isReady, origins, held, certificates, dataDir } = values
  metrics.onRead(() => {
    metrics.instance.showReady(isReady())
    metrics.upstream.showOrigins(origins())
    for (const kind of ['package', 'module'] as const) metrics.storage.showHeld(kind, held(kind))
    for (const [name, pem] of Object.entries(certificates())) {
      if (pem !== undefined) metrics.instance.showCertificate(name as 'server' | 'authority', pem)
    }
  })
  let looking: Promise<void> | undefined
  metrics.onRead(async () => {
    // One at a time: each that hangs holds a thread.
    looking ??= lookAtDisk(metrics, dataDir).finally(() => {
      looking = undefined
    })
    await Promise.race([looking, delay(STATFS_MS, undefined, { ref: false })])
  })
}

async function lookAtDisk(metrics: Metrics, dataDir: string): Promise<void> {
  try {
    const { bavail, blocks, bsize } = await statfs(dataDir)
    metrics.storage.showDisk({ free: bavail * bsize, size: blocks * bsize })
  } catch {
    metrics.storage.showDisk({ free: undefined, size: undefined })
  }
}
