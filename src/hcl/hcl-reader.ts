import { Worker } from 'node:worker_threads'
import { type ErrorFields, MirrorError } from '../errors.ts'
import type { ConfigurationFacts, ConfigurationOptions } from './configuration.ts'
import { listConfigurationFiles } from './configuration-folder.ts'
import type { LockedProvider } from './lock-file.ts'

export type {
  ConfigurationFacts,
  ConfigurationOptions,
  ConfigurationProblem,
  ModuleCall,
} from './configuration.ts'
export type { LockedProvider } from './lock-file.ts'
export type { ProviderRequirement } from './provider-requirements.ts'

/** What the thread is asked. */
export type HclJob =
  | { readonly kind: 'lockFile'; readonly text: string; readonly file: string }
  | {
      readonly kind: 'configuration'
      readonly files: ReadonlyMap<string, string>
      readonly options: ConfigurationOptions
    }

/** What it answers. */
export type HclOutcome =
  | { readonly providers: readonly LockedProvider[] }
  | { readonly facts: ConfigurationFacts }
  | { readonly invalid: { readonly message: string; readonly fields: ErrorFields['CONFIGURATION_FILE_INVALID'] } }
  /** An error that is not about the files: a bug of ours. */
  | { readonly bug: string }

/** When to give up, besides the limit of a minute. */
export interface ReadOptions {
  /** Ends the work on this job; the promise then rejects with its reason. */
  readonly signal?: AbortSignal
}

/** As clients call it. */
const LOCK_FILE_NAME = '.terraform.lock.hcl'
const MAX_FOLDER_LENGTH = 8 * 1_048_576
const MAX_FILES = 2_000
const JOB_TIMEOUT_MS = 60_000
const IDLE_MS = 10_000
const MAX_HEAP_MB = 512
/** WebAssembly keeps the memory that it grew to: after so much text the thread ends, and a new one starts when needed. */
const LARGE_JOB_LENGTH = 262_144

/**
 * The providers of a lock file, as Terraform loads it. Reads in a thread, so that no text keeps the process from its
 * other work.
 * @throws MirrorError `CONFIGURATION_FILE_INVALID` with file, line and reason, for what Terraform refuses too
 */
export async function readLockFile(
  text: string,
  file = LOCK_FILE_NAME,
  { signal }: ReadOptions = {},
): Promise<LockedProvider[]> {
  const outcome = await hclThread.run({ kind: 'lockFile', text, file }, file, signal)
  if ('providers' in outcome) return [...outcome.providers]
  throw unexpected(outcome)
}

/**
 * What the configuration files of one folder ask for: of `files`, text by path, those in `folder` itself (default the
 * root). Reads `.tf`, `.tf.json`, `.tofu` and override files, follows no module, evaluates nothing: what would need that
 * is a problem of the result. A fault in one file hides nothing of the others.
 * @throws MirrorError `CONFIGURATION_FILE_INVALID` if it is too much to read
 */
export async function readConfiguration(
  files: ReadonlyMap<string, string>,
  folder = '',
  { signal, ...options }: ReadOptions & Omit<ConfigurationOptions, 'folder'> = {},
): Promise<ConfigurationFacts> {
  const name = folder === '' ? 'the configuration' : folder
  const { primary, overrides } = listConfigurationFiles(files.keys(), folder)
  const wanted = new Map([...primary, ...overrides].map((path) => [path, files.get(path) ?? '']))
  const job: HclJob = { kind: 'configuration', files: wanted, options: { ...options, folder } }
  if (wanted.size > MAX_FILES || lengthOf(job) > MAX_FOLDER_LENGTH) {
    throw invalid(name, `more than ${MAX_FILES} files or ${MAX_FOLDER_LENGTH} characters`)
  }
  const outcome = await hclThread.run(job, name, signal)
  if ('facts' in outcome) return outcome.facts
  throw unexpected(outcome)
}

function lengthOf(job: HclJob): number {
  if (job.kind === 'lockFile') return job.text.length
  let length = 0
  for (const text of job.files.values()) length += text.length
  return length
}

function unexpected(outcome: HclOutcome): Error {
  if ('invalid' in outcome) {
    return new MirrorError('CONFIGURATION_FILE_INVALID', outcome.invalid.message, outcome.invalid.fields)
  }
  return new Error(`the HCL thread failed: ${'bug' in outcome ? outcome.bug : 'it answered something else'}`)
}

function invalid(file: string, reason: string): MirrorError<'CONFIGURATION_FILE_INVALID'> {
  return new MirrorError('CONFIGURATION_FILE_INVALID', `${file}: ${reason}`, { file, reason })
}

/**
 * One thread, one job at a time. It starts at the first job, ends when idle, and keeps the process alive during a job
 * only. A job that makes it crash or hang costs that job alone.
 */
class HclThread {
  #worker: Worker | undefined
  /** Of the job at work. */
  #name = ''
  #running: PromiseWithResolvers<HclOutcome> | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()

  /** The answer, after all earlier jobs; `name` is what errors say. */
  run(job: HclJob, name: string, signal?: AbortSignal): Promise<HclOutcome> {
    const outcome = this.#queue.then(() => this.#work(job, name, signal))
    this.#queue = outcome.catch(() => undefined)
    return signal === undefined ? outcome : unlessAborted(outcome, signal)
  }

  async #work(job: HclJob, name: string, signal: AbortSignal | undefined): Promise<HclOutcome> {
    signal?.throwIfAborted()
    clearTimeout(this.#idleTimer)
    this.#name = name
    this.#worker ??= this.#start()
    const running = Promise.withResolvers<HclOutcome>()
    this.#running = running
    const abort = () => this.#end(signal?.reason)
    const late = () => this.#end(invalid(name, `it took longer than ${JOB_TIMEOUT_MS / 1000} seconds to read`))
    const timer = setTimeout(late, JOB_TIMEOUT_MS)
    signal?.addEventListener('abort', abort)
    this.#worker.ref()
    this.#worker.postMessage(job)
    try {
      return await running.promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#running = undefined
      this.#worker?.unref()
      const idleMs = lengthOf(job) > LARGE_JOB_LENGTH ? 0 : IDLE_MS
      this.#idleTimer = setTimeout(() => this.#end('idle'), idleMs).unref()
    }
  }

  #start(): Worker {
    const worker = new Worker(workerEntry(), { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const isCurrent = () => this.#worker === worker
    worker.on('message', (outcome: HclOutcome) => isCurrent() && this.#running?.resolve(outcome))
    // Out of memory is one of these.
    worker.on(
      'error',
      ({ message }) => isCurrent() && this.#end(invalid(this.#name, `it could not be read: ${message}`)),
    )
    worker.on('exit', (code) => isCurrent() && this.#end(invalid(this.#name, `its reader ended with code ${code}`)))
    return worker
  }

  #end(reason: unknown): void {
    const worker = this.#worker
    this.#worker = undefined
    this.#running?.reject(reason)
    void worker?.terminate()
  }
}

const hclThread = new HclThread()

/** Whoever gives up need not wait for the jobs of others. */
async function unlessAborted<T>(outcome: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([outcome, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The sources run as `.ts` by type stripping, the build as `.js`. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './hcl-worker.ts' : './hcl-worker.js', import.meta.url)
}
