import { Worker } from 'node:worker_threads'
import { type ErrorFields, MirrorError } from '../errors.ts'
import type { ConfigurationFacts, ConfigurationOptions } from './configuration.ts'
import type { LockedProvider } from './lock-file.ts'

export type {
  ConfigurationFacts,
  ConfigurationOptions,
  ConfigurationProblem,
  ModuleCall,
  ProviderRequirement,
} from './configuration.ts'
export type { LockedProvider } from './lock-file.ts'

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
  | { readonly failure: string }

/** As clients call it. */
const LOCK_FILE_NAME = '.terraform.lock.hcl'
const MAX_FOLDER_LENGTH = 16 * 1_048_576
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
export async function readLockFile(text: string, file = LOCK_FILE_NAME): Promise<LockedProvider[]> {
  const outcome = await hclThread.run({ kind: 'lockFile', text, file })
  if ('providers' in outcome) return [...outcome.providers]
  throw unexpected(outcome, file)
}

/**
 * What the configuration files of one folder (default the root of `files`, which are text by path) ask for. Reads `.tf`,
 * `.tf.json`, `.tofu` and override files, follows no module, evaluates nothing: what would need that is a problem of
 * the result. A fault in one file hides nothing of the others.
 * @throws MirrorError `CONFIGURATION_FILE_INVALID` if it is too much to read
 */
export async function readConfiguration(
  files: ReadonlyMap<string, string>,
  folder = '',
  options: Omit<ConfigurationOptions, 'folder'> = {},
): Promise<ConfigurationFacts> {
  const name = folder === '' ? 'the configuration' : folder
  const job: HclJob = { kind: 'configuration', files, options: { ...options, folder } }
  if (files.size > MAX_FILES || lengthOf(job) > MAX_FOLDER_LENGTH) {
    throw invalid(name, `more than ${MAX_FILES} files or ${MAX_FOLDER_LENGTH} characters`)
  }
  const outcome = await hclThread.run(job)
  if ('facts' in outcome) return outcome.facts
  throw unexpected(outcome, name)
}

function lengthOf(job: HclJob): number {
  if (job.kind === 'lockFile') return job.text.length
  let length = 0
  for (const text of job.files.values()) length += text.length
  return length
}

function unexpected(outcome: HclOutcome, file: string): Error {
  if ('invalid' in outcome) {
    return new MirrorError('CONFIGURATION_FILE_INVALID', outcome.invalid.message, outcome.invalid.fields)
  }
  return invalid(file, `it could not be read: ${'failure' in outcome ? outcome.failure : 'no answer'}`)
}

function invalid(file: string, reason: string): MirrorError<'CONFIGURATION_FILE_INVALID'> {
  return new MirrorError('CONFIGURATION_FILE_INVALID', `${file}: ${reason}`, { file, reason })
}

/**
 * One thread, one job at a time. It starts at the first job, ends when idle, and never keeps the process alive. A job that crashes or hangs it costs that job alone.
 */
class HclThread {
  #worker: Worker | undefined
  #finish: ((outcome: HclOutcome) => void) | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()

  /** The answer, after all earlier jobs. */
  run(job: HclJob): Promise<HclOutcome> {
    const outcome = this.#queue.then(() => this.#work(job))
    this.#queue = outcome.catch(() => undefined)
    return outcome
  }

  async #work(job: HclJob): Promise<HclOutcome> {
    clearTimeout(this.#idleTimer)
    const { promise, resolve } = Promise.withResolvers<HclOutcome>()
    this.#finish = resolve
    const timer = setTimeout(() => this.#end(`it took longer than ${JOB_TIMEOUT_MS / 1000} seconds`), JOB_TIMEOUT_MS)
    this.#worker ??= this.#start()
    this.#worker.ref()
    this.#worker.postMessage(job)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#finish = undefined
      this.#worker?.unref()
      const idleMs = lengthOf(job) > LARGE_JOB_LENGTH ? 0 : IDLE_MS
      this.#idleTimer = setTimeout(() => this.#end('idle'), idleMs).unref()
    }
  }

  #start(): Worker {
    const worker = new Worker(workerEntry(), { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const isCurrent = () => this.#worker === worker
    worker.on('message', (outcome: HclOutcome) => isCurrent() && this.#finish?.(outcome))
    worker.on('error', (error) => isCurrent() && this.#end(`the thread crashed: ${error.message}`))
    worker.on('exit', (code) => isCurrent() && this.#end(`the thread ended with code ${code}`))
    return worker
  }

  #end(failure: string): void {
    const worker = this.#worker
    this.#worker = undefined
    this.#finish?.({ failure })
    void worker?.terminate()
  }
}

const hclThread = new HclThread()

/** The sources run as `.ts` by type stripping, the build as `.js`. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './hcl-worker.ts' : './hcl-worker.js', import.meta.url)
}
