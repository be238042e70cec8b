import { Worker } from 'node:worker_threads'
import type { PackageHashes } from './package-h1.ts'

/** For tests and special cases; the defaults fit a server. */
export interface PackageHasherOptions {
  /** A job that takes longer loses its worker and has no hashes. Default 5 minutes. */
  readonly jobTimeoutMs?: number
  /** How long a worker without a job stays. Default 30 seconds. */
  readonly idleMs?: number
  /** The thread to start; answers each path with its `PackageHashes`. Default `package-h1-worker`. */
  readonly worker?: URL
}

const MAX_HEAP_MB = 128
const CLOSED = 'the hasher is closed'

/**
 * Computes `h1:` hashes in one worker thread, one zip at a time: inflating shares the thread pool with all file reads,
 * and more jobs at once would slow the archives being served. The worker starts at the first job, ends when idle,
 * and never keeps the process alive. A worker that crashes or hangs costs the job it had; the next one starts anew.
 */
export class PackageHasher implements AsyncDisposable {
  readonly #jobTimeoutMs: number
  readonly #idleMs: number
  readonly #entry: URL
  #worker: Worker | undefined
  #finish: ((outcome: PackageHashes) => void) | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(options: PackageHasherOptions = {}) {
    this.#jobTimeoutMs = options.jobTimeoutMs ?? 300_000
    this.#idleMs = options.idleMs ?? 30_000
    this.#entry = options.worker ?? workerEntry()
  }

  /** The `h1:` hashes of the zip at `path`, after all earlier jobs. Never throws; see `hashPackageZip`. */
  hash(path: string): Promise<PackageHashes> {
    const job = this.#queue.then(() => this.#run(path))
    this.#queue = job.catch(() => undefined)
    return job
  }

  /** Ends the worker. The job at work and all that wait end without hashes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#end(CLOSED)
  }

  async #run(path: string): Promise<PackageHashes> {
    if (this.#closed) return { hashes: [], reason: CLOSED }
    clearTimeout(this.#idleTimer)
    const { promise, resolve } = Promise.withResolvers<PackageHashes>()
    this.#finish = resolve
    const late = `no h1: took longer than ${this.#jobTimeoutMs} ms`
    const timer = setTimeout(() => void this.#end(late), this.#jobTimeoutMs).unref()
    this.#worker ??= this.#start()
    this.#worker.postMessage(path)
    const outcome = await promise
    clearTimeout(timer)
    this.#idleTimer = setTimeout(() => void this.#end('idle'), this.#idleMs).unref()
    return outcome
  }

  #start(): Worker {
    const worker = new Worker(this.#entry, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const isCurrent = () => this.#worker === worker
    worker.on('message', (outcome: PackageHashes) => isCurrent() && this.#finish?.(outcome))
    worker.on('error', (error) => isCurrent() && void this.#end(`no h1: the worker crashed: ${error.message}`))
    worker.on('exit', (code) => isCurrent() && void this.#end(`no h1: the worker ended with code ${code}`))
    worker.unref()
    return worker
  }

  async #end(reason: string): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    clearTimeout(this.#idleTimer)
    this.#finish?.({ hashes: [], reason })
    await worker?.terminate()
  }
}

/** The sources run as `.ts` by type stripping, the build as `.js`. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './package-h1-worker.ts' : './package-h1-worker.js', import.meta.url)
}
