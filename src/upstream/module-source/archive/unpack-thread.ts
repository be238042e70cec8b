import { Worker } from 'node:worker_threads'
import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import type { SpoolPlace } from './spool.ts'
import type { UnpackJob } from './unpack.ts'

const MAX_HEAP_MB = 256

type Outcome =
  | { readonly entries: SourceEntry<SpoolPlace>[] }
  | { readonly reason: string }
  /** Of the file system, mostly. */
  | { readonly failure: { readonly message: string; readonly code?: string; readonly syscall?: string } }

/**
 * As `unpackArchive`, in a thread of its own: decoders may be slow, and a hostile archive may be slower.
 * @throws MirrorError `MODULE_INVALID`; the reason of `signal`
 */
export async function unpackInThread(job: UnpackJob, signal: AbortSignal): Promise<SourceEntry<SpoolPlace>[]> {
  signal.throwIfAborted()
  const worker = new Worker(workerEntry(), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  })
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  worker.on('message', resolve)
  worker.on('error', (error) => reject(invalidModule('unpacking it failed', error)))
  worker.on('exit', () => reject(invalidModule('unpacking it ended early')))
  try {
    const outcome = await promise
    if ('reason' in outcome) throw invalidModule(outcome.reason)
    if ('failure' in outcome) throw Object.assign(new Error(outcome.failure.message), outcome.failure)
    return outcome.entries
  } finally {
    signal.removeEventListener('abort', onAbort)
    await worker.terminate()
  }
}

/** The sources run as `.ts` by type stripping, the build as `.js`. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './unpack-worker.ts' : './unpack-worker.js', import.meta.url)
}
