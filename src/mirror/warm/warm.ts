import type { Log } from '../../log.ts'
import type { JobContext, JobKind } from '../jobs/job-kind.ts'
import type { Mirror } from '../mirror.ts'
import type { Modules } from '../modules.ts'
import type { Inventory } from '../stock/inventory.ts'
import type { View } from '../view.ts'
import { Fetching } from './fetching.ts'
import type { ReadCalls } from './module-walk.ts'
import { Planning, type WarmPlan } from './planning.ts'
import { VersionChoice } from './version-choice.ts'
import { WarmRequest } from './warm-request.ts'
import { walkWishes } from './warm-walk.ts'
import type { WarmWork } from './warm-work.ts'
import { readWishes, type Wishes, type WishReaders } from './wishes.ts'

/** The longest that a request is read; the reader has a limit for each text too. */
const CHECK_MS = 5 * 60_000

/** What `Warm` is made of. */
export interface WarmParts extends WishReaders {
  readonly mirror: Mirror
  readonly modules: Modules
  readonly readCalls: ReadCalls
  readonly inventory: Pick<Inventory, 'has' | 'whenComplete'>
  /** What it hides is not warmed. */
  readonly view: View
  /** Nothing is asked of any origin. */
  readonly sealed: boolean
  readonly log: Log
}

/**
 * Brings what somebody will need before they need it: providers, modules and what they call, everything that lock files
 * or a configuration name. By the same ways as clients, so that all that holds for them holds here.
 */
export class Warm {
  readonly #parts: WarmParts
  readonly #choice: VersionChoice
  /** The kind of job that does it. */
  readonly kind: JobKind<WarmRequest>

  constructor(parts: WarmParts) {
    this.#parts = parts
    this.#choice = new VersionChoice(parts)
    this.kind = {
      kind: 'warm',
      request: WarmRequest,
      check: async (request) => void (await this.#read(request, AbortSignal.timeout(CHECK_MS))),
      run: (request, job) => this.#run(request, job),
    }
  }

  /**
   * What a job with this request would fetch, by what is known without fetching it: nothing but documents of origins.
   * @throws MirrorError `REQUEST_INVALID`, `CONFIGURATION_FILE_INVALID`; the reason of the signal
   */
  async plan(request: WarmRequest, signal: AbortSignal): Promise<WarmPlan> {
    const wishes = await this.#read(request, signal)
    const planning = new Planning({ ...this.#parts, follows: wishes.followModules }, signal)
    await this.#walk(wishes, planning)
    return planning.plan
  }

  async #run(request: WarmRequest, job: JobContext): Promise<void> {
    const wishes = await this.#read(request, job.signal)
    const fetching = new Fetching(job, this.#parts)
    await this.#walk(wishes, fetching)
    await fetching.checkAll()
  }

  #read(request: WarmRequest, signal: AbortSignal): Promise<Wishes> {
    return readWishes(request, this.#parts, signal)
  }

  #walk(wishes: Wishes, work: WarmWork): Promise<void> {
    return walkWishes(wishes, work, { ...this.#parts, choice: this.#choice })
  }
}
