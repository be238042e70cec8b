import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SpaceLedger } from './space-ledger.ts'
import type { SpaceReservation } from './space-reservation.ts'

const STAT_BLOCK_BYTES = 512
const MEASURE_EVERY_MS = 500

/** A folder for work that needs files of its own; disposing removes it. `run` turns errors of the disk into ours. */
export interface Workspace extends AsyncDisposable {
  readonly path: string
  run<T>(work: () => Promise<T>): Promise<T>
}

/** Makes such folders. */
export interface Workspaces {
  create(): Promise<Workspace>
}

/**
 * Folders to work in that count as reserved space, as large as they are. A git, or a thread that unpacks, cannot be
 * halted at a limit: it waits for space before it begins, is looked at while it works, and what it takes is freed
 * elsewhere. How much it may take at most is the business of the limits for modules.
 */
export class CountedWorkspaces implements Workspaces {
  readonly #inner: Workspaces
  readonly #ledger: SpaceLedger

  constructor(inner: Workspaces, ledger: SpaceLedger) {
    this.#inner = inner
    this.#ledger = ledger
  }

  /** Waits for space. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`, `SHUTTING_DOWN` */
  async create(): Promise<Workspace> {
    using stack = new DisposableStack()
    const reservation = stack.use(await this.#ledger.reserve())
    const workspace = await this.#inner.create()
    stack.move()
    return new CountedWorkspace(workspace, reservation)
  }
}

class CountedWorkspace implements Workspace {
  readonly #inner: Workspace
  readonly #reservation: SpaceReservation
  readonly #timer: NodeJS.Timeout
  #measuring = false

  constructor(inner: Workspace, reservation: SpaceReservation) {
    this.#inner = inner
    this.#reservation = reservation
    this.#timer = setInterval(() => void this.#measure(), MEASURE_EVERY_MS)
    this.#timer.unref()
  }

  get path(): string {
    return this.#inner.path
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#inner.run(work)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _reservation = this.#reservation
    clearInterval(this.#timer)
    await this.#inner[Symbol.asyncDispose]()
  }

  async #measure(): Promise<void> {
    if (this.#measuring) return
    this.#measuring = true
    this.#reservation.set(await diskBytesOf(this.path))
    this.#measuring = false
  }
}

/** What comes and goes while this looks counts or does not. */
async function diskBytesOf(folder: string): Promise<number> {
  let sum = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) sum += await diskBytesOf(path)
    else sum += ((await lstat(path).catch(() => undefined))?.blocks ?? 0) * STAT_BLOCK_BYTES
  }
  return sum
}
