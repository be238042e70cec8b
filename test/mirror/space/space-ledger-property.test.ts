import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SpaceLedger } from '../../../src/mirror/space/space-ledger.ts'
import type { SpaceReservation } from '../../../src/mirror/space/space-reservation.ts'

const BLOCK = 4_096
const LIMIT = 1_000 * BLOCK

interface Download {
  /** Blocks. */
  readonly blocks: number
  /** Bytes come in pieces of so many blocks. */
  readonly piece: number
  readonly sized: boolean
  /** Ends badly after this part of it. */
  readonly failsAt: number | undefined
  /** Readers need it for so many turns after it is stored. */
  readonly readFor: number
}

const download: fc.Arbitrary<Download> = fc.record({
  blocks: fc.integer({ min: 1, max: 500 }),
  piece: fc.integer({ min: 1, max: 60 }),
  sized: fc.boolean(),
  failsAt: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined, freq: 4 }),
  readFor: fc.nat(20),
})

/** A store whose blobs can be evicted when nobody reads them. */
class World {
  used = 0
  /** The most that was reserved and stored at any time. */
  peak = 0
  readonly stored: { bytes: number; readUntil: number }[] = []
  turn = 0
  readonly shutdown = new AbortController()
  readonly ledger: SpaceLedger

  constructor() {
    this.ledger = new SpaceLedger({
      limits: { maxSize: LIMIT, minFree: undefined },
      diskFree: async () => Number.POSITIVE_INFINITY,
      shutdown: this.shutdown.signal,
      onFailure: (error) => expect.fail(String(error)),
    })
    this.ledger.evictBy(async () => {
      await this.pass()
      const index = this.stored.findIndex(({ readUntil }) => readUntil <= this.turn)
      const [gone] = index === -1 ? [] : this.stored.splice(index, 1)
      if (gone !== undefined) this.#add(-gone.bytes)
      return { freed: gone?.bytes ?? 0, mayFreeMore: this.stored.length > 0, pinned: 0 }
    })
    this.ledger.setUsed(0, { isWhole: true })
    void this.#turnByItself()
  }

  /** Readers leave, whatever else happens, and then the ledger is told. */
  async #turnByItself(): Promise<void> {
    while (!this.shutdown.signal.aborted) {
      await this.pass()
      this.ledger.poke()
    }
  }

  async pass(): Promise<void> {
    this.turn += 1
    await new Promise((resolve) => setImmediate(resolve))
    this.peak = Math.max(this.peak, this.used + this.ledger.reserved)
  }

  keep(reservation: SpaceReservation, bytes: number, readFor: number): void {
    reservation[Symbol.dispose]()
    this.#add(bytes)
    this.stored.push({ bytes, readUntil: this.turn + readFor })
    this.peak = Math.max(this.peak, this.used + this.ledger.reserved)
  }

  #add(bytes: number): void {
    this.used += bytes
    this.ledger.setUsed(this.used, { isWhole: true })
  }
}

async function run(world: World, { blocks, piece, sized, failsAt, readFor }: Download): Promise<'stored' | 'failed'> {
  const total = blocks * BLOCK
  using reservation = await world.ledger.reserve()
  if (sized) await reservation.expect(total)
  for (let size = 0; size < total; ) {
    if (failsAt !== undefined && size >= failsAt * total) return 'failed'
    size = Math.min(total, size + piece * BLOCK)
    await reservation.cover(size)
    expect(reservation.bytes).toBeGreaterThanOrEqual(size)
    await world.pass()
    reservation.wrote(size)
  }
  world.keep(reservation, total, readFor)
  return 'stored'
}

it('whatever comes at a time and in whatever pieces: all is stored, the limit is kept but for one archive, and nothing stays reserved', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(download, { minLength: 1, maxLength: 25 }), async (downloads) => {
      const world = new World()
      const outcomes = await Promise.all(downloads.map((each) => run(world, each)))
      const expected = downloads.map(({ failsAt }) => (failsAt === undefined || failsAt >= 1 ? 'stored' : 'failed'))
      for (const [index, outcome] of outcomes.entries()) {
        if (expected[index] === 'stored') expect(outcome).toBe('stored')
      }
      expect(world.ledger.reserved).toBe(0)
      expect(world.ledger.used).toBe(world.used)
      // A download that does not tell its size reserves up to twice what it has.
      const largest = Math.max(...downloads.map(({ blocks, sized }) => blocks * (sized ? 1 : 2)))
      expect(world.peak).toBeLessThanOrEqual(LIMIT + Math.max(largest * BLOCK, 256 * 1_024))
      world.shutdown.abort()
    }),
    { numRuns: 150 },
  )
})
