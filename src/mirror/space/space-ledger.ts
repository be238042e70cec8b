import type { MirrorError } from '../../errors.ts'
import { settledWithin } from '../deadline.ts'
import { archiveLimits, excess, type SpaceLimits, type SpaceUse, waterMark } from './space-limits.ts'
import { SpaceQueue, type SpaceRequest } from './space-queue.ts'
import { noSpace, tooLarge, tooLargeForDisk } from './space-refusal.ts'
import { type ReservationLedger, SpaceReservation, type Step } from './space-reservation.ts'

/** What came of one step to make space. Bytes. */
export interface Eviction {
  /** What was freed; zero says that nothing can be taken away now. */
  readonly freed: number
  /** Later, more may be freed: something is in use, or not known yet. */
  readonly mayFreeMore: boolean
  /** What sets of pins hold. */
  readonly pinned: number
}

/** Takes one thing away. `urgent`: somebody waits for it. @throws MirrorError `STORAGE_FAILED` */
export type Evict = (options: { urgent: boolean }) => Promise<Eviction>

/** What a `SpaceLedger` is made of. */
export interface SpaceLedgerParts {
  readonly limits: SpaceLimits
  /** Bytes that are free on the disk. @throws MirrorError `STORAGE_FAILED` */
  readonly diskFree: () => Promise<number>
  /** Ends all waiting. */
  readonly shutdown: AbortSignal
  /** Told of what fails while nobody waits for it. */
  readonly onFailure: (error: unknown) => void
  /** Told of each that is refused for want of space. */
  readonly onRefused?: () => void
}

/** Whoever waits is refused when for so long nothing was freed and nobody went on … */
const PATIENCE_MS = 60_000
/** … or only so long, if nothing is seen that could be freed: what has just come in is recorded first … */
const HOPELESS_MS = 3_000
/** … and in any case after so long. */
const MAX_WAIT_MS = 15 * 60_000
/** While somebody waits: what nobody tells of is looked at so often. */
const LOOK_MS = 500

/**
 * Counts what is used and reserved of the disk, and lets no more come in than fits. Space is reserved in steps, as bytes
 * come. Where it is short, something is taken away; until then all wait, and the oldest reservation is served first. If
 * nothing can be taken away, one reservation at a time goes over the limit: otherwise downloads that are half done would
 * wait for each other. So the limit is exceeded by one archive at most. From 95 % of the limit on, space is made in the
 * background, down to 90 %.
 */
export class SpaceLedger implements ReservationLedger {
  readonly limits: SpaceLimits
  readonly #parts: SpaceLedgerParts
  readonly #queue = new SpaceQueue()
  #evict: Evict = async () => ({ freed: 0, mayFreeMore: false, pinned: 0 })
  #use: SpaceUse = { used: 0, reserved: 0, unwritten: 0, free: Number.POSITIVE_INFINITY }
  #measured = Promise.withResolvers<void>()
  #isMeasured = false
  #made = 0
  #open = 0
  /** The reservation that goes over the limit. */
  #over: SpaceReservation | undefined
  #progressAt = performance.now()
  /** When something was seen the last time that could make space later. */
  #hopeAt = Number.NEGATIVE_INFINITY
  #changes = Promise.withResolvers<void>()
  #serving = false
  #trimming = false

  constructor(parts: SpaceLedgerParts) {
    this.#parts = parts
    this.limits = parts.limits
    const { shutdown } = parts
    shutdown.addEventListener('abort', () => this.#refuseAll(shutdown.reason), { once: true })
  }

  /** Disk blocks of everything stored, in bytes; undefined until they are added up. */
  get used(): number | undefined {
    return this.#isMeasured ? this.#use.used : undefined
  }

  /** Bytes of what is on its way in. */
  get reserved(): number {
    return this.#use.reserved
  }

  /** Bytes that are free on the disk. @throws MirrorError `STORAGE_FAILED` */
  diskFree(): Promise<number> {
    return this.#parts.diskFree()
  }

  /** From now on, space is made so. */
  evictBy(evict: Evict): void {
    this.#evict = evict
    this.poke()
  }

  /** What is stored now. `isWhole`: everything is added up. Under a limit nothing is reserved before that. */
  setUsed(bytes: number, { isWhole }: { isWhole: boolean }): void {
    if (bytes < this.#use.used) this.#progressAt = performance.now()
    this.#use = { ...this.#use, used: bytes }
    if (isWhole) this.#measured.resolve()
    this.#isMeasured = isWhole
    this.poke()
  }

  /** Reserves a first step; waits for space. The caller disposes of it. @throws MirrorError `STORAGE_FULL`; the reason of the signal */
  async reserve(signal?: AbortSignal): Promise<SpaceReservation> {
    const reservation = new SpaceReservation(this, this.#made)
    this.#made += 1
    this.#open += 1
    try {
      await reservation.begin(signal)
      return reservation
    } catch (error) {
      reservation[Symbol.dispose]()
      throw error
    }
  }

  /** Something may have changed: looks at who waits, and whether space must be made. */
  poke(): void {
    if (this.#queue.size > 0) {
      this.#changes.resolve()
      this.#inBackground(this.#serve())
    } else if (this.#exceeds('high')) {
      this.#inBackground(this.#trim())
    }
  }

  /** Looks at the disk, which others use too. @throws MirrorError `STORAGE_FAILED` */
  async look(): Promise<void> {
    await this.#refresh()
    this.poke()
  }

  /** As `ReservationLedger` says. */
  async grow(reservation: SpaceReservation, { least, wanted }: Step, signal?: AbortSignal): Promise<void> {
    const { maxSize, minFree } = this.limits
    this.#parts.shutdown.throwIfAborted()
    signal?.throwIfAborted()
    const most = (maxSize ?? Number.POSITIVE_INFINITY) - reservation.bytes
    if (maxSize !== undefined && least > most) throw this.#refused(tooLarge(maxSize))
    const bytes = Math.min(wanted, most)
    const goesFirst = reservation === this.#over
    const request = { reservation, bytes, since: performance.now(), goesFirst, ...Promise.withResolvers<void>() }
    const isKnown = maxSize === undefined || this.#isMeasured
    if (minFree === undefined && isKnown && this.#queue.size === 0 && this.#fits(request)) return this.#grant(request)

    this.#queue.add(request)
    const abort = (): void => this.#queue.refuse(signal?.reason, (each) => each === request)
    signal?.addEventListener('abort', abort, { once: true })
    this.poke()
    try {
      await request.promise
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  /** As `ReservationLedger` says. */
  async assertPossible(bytes: number): Promise<void> {
    const { maxSize, minFree } = this.limits
    if (maxSize !== undefined && bytes > maxSize) throw this.#refused(tooLarge(maxSize, bytes))
    if (minFree === undefined || this.used === undefined) return
    if (bytes > (await this.diskFree()) + this.used - minFree) throw this.#refused(tooLargeForDisk(minFree, bytes))
  }

  /** As `ReservationLedger` says. */
  change(reserved: number, unwritten: number): void {
    const use = this.#use
    this.#use = { ...use, reserved: use.reserved + reserved, unwritten: use.unwritten + unwritten }
    if (reserved > 0) this.poke()
  }

  /** As `ReservationLedger` says. */
  close(reservation: SpaceReservation): void {
    this.#open -= 1
    if (this.#over === reservation) this.#over = undefined
    this.#progressAt = performance.now()
    this.poke()
  }

  async #refresh(): Promise<void> {
    if (this.limits.minFree === undefined) return
    const free = await this.#parts.diskFree()
    this.#use = { ...this.#use, free }
  }

  #fits({ bytes }: SpaceRequest): boolean {
    return excess(archiveLimits(this.limits), this.#use, bytes) <= 0
  }

  #exceeds(mark: 'high' | 'low'): boolean {
    return excess(waterMark(this.limits, mark), this.#use, 0) > 0
  }

  #grant(request: SpaceRequest): void {
    this.#progressAt = performance.now()
    this.#queue.remove(request)
    request.reservation.add(request.bytes)
    request.resolve()
  }

  /** Grants what waits, one after the other. */
  async #serve(): Promise<void> {
    if (this.#serving) return
    this.#serving = true
    try {
      // A disk so slow that counting takes longer must not stop everything.
      if (this.limits.maxSize !== undefined) await settledWithin(this.#measured.promise, PATIENCE_MS)
      for (let { head } = this.#queue; head !== undefined; head = this.#queue.head) await this.#attend(head)
    } catch (error) {
      // Nobody knows whether there is space.
      this.#refuseAll(error)
    } finally {
      this.#serving = false
    }
    await this.#trim()
  }

  async #attend(head: SpaceRequest): Promise<void> {
    this.#changes = Promise.withResolvers<void>()
    const { promise: changed } = this.#changes
    await this.#refresh()
    if (head !== this.#queue.head) return
    if (this.#fits(head)) return this.#grant(head)
    const { freed, mayFreeMore, pinned } = await this.#evict({ urgent: true })
    if (freed > 0) this.#progressAt = performance.now()
    if (freed > 0 || head !== this.#queue.head) return
    if (this.#mayGoOver(head)) {
      this.#over = head.reservation
      return this.#grant(head)
    }
    const full = noSpace(this.limits, this.#use, pinned)
    const othersRun = this.#open > this.#queue.size
    if (mayFreeMore || othersRun) this.#hopeAt = performance.now()
    this.#queue.refuse(
      full,
      (request) => this.#isLate(request),
      () => this.#parts.onRefused?.(),
    )
    if (head === this.#queue.head) await settledWithin(changed, LOOK_MS)
  }

  /** If all others keep the limit, one may break it; who began to do so goes on. */
  #mayGoOver({ reservation }: SpaceRequest): boolean {
    if (this.#over !== undefined) return this.#over === reservation
    const { bytes, written } = reservation
    const { used, reserved, unwritten, free } = this.#use
    const others = { used, reserved: reserved - bytes, unwritten: unwritten - (bytes - written), free: free + written }
    return excess(archiveLimits(this.limits), others, 0) <= 0
  }

  #isLate({ since }: SpaceRequest): boolean {
    const now = performance.now()
    const idleSince = Math.max(since, this.#progressAt)
    if (now - idleSince >= PATIENCE_MS || now - since >= MAX_WAIT_MS) return true
    return now - Math.max(idleSince, this.#hopeAt) >= HOPELESS_MS
  }

  /** Makes space from the high to the low water mark. */
  async #trim(): Promise<void> {
    const { shutdown } = this.#parts
    const isKnown = this.#isMeasured || this.limits.maxSize === undefined
    if (this.#trimming || !isKnown || !this.#exceeds('high')) return
    this.#trimming = true
    try {
      for (let freed = 1; freed > 0 && !shutdown.aborted; ) {
        await this.#refresh()
        if (!this.#exceeds('low')) return
        freed = (await this.#evict({ urgent: false })).freed
      }
    } finally {
      this.#trimming = false
    }
  }

  #refused(error: MirrorError): MirrorError {
    this.#parts.onRefused?.()
    return error
  }

  #refuseAll(reason: unknown): void {
    this.#queue.refuse(reason)
    this.#changes.resolve()
    this.#measured.resolve()
  }

  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.#parts.onFailure(error))
  }
}
