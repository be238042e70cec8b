/** Reserved at first; from then on as much as there is already, up to `MAX_STEP_BYTES`. */
const FIRST_STEP_BYTES = 256 * 1024
const MAX_STEP_BYTES = 8 * 1024 * 1024
/** A file takes whole blocks. */
const BLOCK_BYTES = 4096

/** How much more a reservation needs now, and how much is good for it. Bytes. */
export interface Step {
  readonly least: number
  readonly wanted: number
}

/** What a reservation is made of: a `SpaceLedger`. Bytes. */
export interface ReservationLedger {
  /** Waits until `reservation` may have so much more, and adds it. @throws MirrorError `STORAGE_FULL`; the reason of the signal */
  grow(reservation: SpaceReservation, step: Step, signal?: AbortSignal): Promise<void>
  /** So many bytes more are reserved, and so many more of those are not on the disk. */
  change(reserved: number, unwritten: number): void
  /** @throws MirrorError `STORAGE_FULL` if so many bytes can never be reserved */
  assertPossible(bytes: number): Promise<void>
  /** The reservation is over. */
  close(reservation: SpaceReservation): void
}

/** Space for one thing that comes in. Whoever got it from the ledger disposes of it when the bytes are stored, or gone. */
export class SpaceReservation implements Disposable {
  /** Of two reservations, the older one has the smaller number. */
  readonly age: number
  readonly #ledger: ReservationLedger
  #bytes = 0
  #written = 0
  #expected = Number.POSITIVE_INFINITY
  #closed = false

  /** Made by a ledger alone. */
  constructor(ledger: ReservationLedger, age: number) {
    this.#ledger = ledger
    this.age = age
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of it that are on the disk. */
  get written(): number {
    return this.#written
  }

  /** Reserves the first step; waits for space. @throws MirrorError `STORAGE_FULL`; the reason of the signal */
  async begin(signal?: AbortSignal): Promise<void> {
    await this.#ledger.grow(this, { least: BLOCK_BYTES, wanted: FIRST_STEP_BYTES }, signal)
  }

  /** So many bytes will come in all. @throws MirrorError `STORAGE_FULL` if they would not fit though everything else were gone */
  async expect(bytes: number): Promise<void> {
    this.#expected = inBlocks(bytes)
    await this.#ledger.assertPossible(this.#expected)
  }

  /** Sees to it that `bytes` in all are reserved; waits for space. @throws MirrorError `STORAGE_FULL`; the reason of the signal */
  async cover(bytes: number, signal?: AbortSignal): Promise<void> {
    const least = inBlocks(bytes) - this.#bytes
    if (least <= 0) return
    const wanted = Math.min(MAX_STEP_BYTES, this.#bytes, this.#expected - this.#bytes)
    await this.#ledger.grow(this, { least, wanted: Math.max(least, wanted) }, signal)
  }

  /** So many bytes are on the disk by now. */
  wrote(bytes: number): void {
    const written = Math.min(bytes, this.#bytes)
    this.#ledger.change(0, this.#written - written)
    this.#written = written
  }

  /** Exactly so many bytes are on the disk, whether there was space for them or not. */
  set(bytes: number): void {
    if (this.#closed) return
    this.#ledger.change(bytes - this.#bytes, this.#written - this.#bytes)
    this.#bytes = bytes
    this.#written = bytes
  }

  /** For the ledger alone: so many bytes are granted. */
  add(bytes: number): void {
    if (this.#closed) return
    this.#bytes += bytes
    this.#ledger.change(bytes, bytes)
  }

  [Symbol.dispose](): void {
    if (this.#closed) return
    this.set(0)
    this.#closed = true
    this.#ledger.close(this)
  }
}

function inBlocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
}
