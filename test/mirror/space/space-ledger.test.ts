import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { type Eviction, SpaceLedger } from '../../../src/mirror/space/space-ledger.ts'
import type { SpaceReservation } from '../../../src/mirror/space/space-reservation.ts'
import { failureOf, settle } from '../parts-fixture.ts'

const MB = 1_048_576
const NOTHING: Eviction = { freed: 0, mayFreeMore: false, pinned: 0 }

/** A disk, what is stored on it, and what may be evicted. */
class FakeDisk {
  free = 1_000 * MB
  used = 0
  evictable: number[] = []
  busy = false
  pinned = 0
  readonly evictions: boolean[] = []
  readonly shutdown = new AbortController()
  readonly ledger: SpaceLedger

  constructor(limits: { maxSize?: number; minFree?: number }, options: { measured?: boolean } = {}) {
    this.ledger = new SpaceLedger({
      limits: { maxSize: limits.maxSize, minFree: limits.minFree },
      diskFree: async () => this.free,
      shutdown: this.shutdown.signal,
      onFailure: (error) => expect.fail(String(error)),
    })
    this.ledger.evictBy(async ({ urgent }) => {
      this.evictions.push(urgent)
      const freed = this.evictable.shift()
      if (freed === undefined) return { ...NOTHING, mayFreeMore: this.busy, pinned: this.pinned }
      this.store(-freed)
      return { freed, mayFreeMore: this.busy, pinned: this.pinned }
    })
    this.ledger.setUsed(0, { isWhole: options.measured !== false })
  }

  store(bytes: number, isWhole = true): void {
    this.used += bytes
    this.free -= bytes
    this.ledger.setUsed(this.used, { isWhole })
  }

  /** What was reserved is stored. */
  commit(reservation: SpaceReservation): void {
    const { bytes, written } = reservation
    reservation[Symbol.dispose]()
    this.free += written
    this.store(bytes)
  }
}

function watched(work: Promise<unknown>): { state: string } {
  const seen = { state: 'waits' }
  work.then(
    () => {
      seen.state = 'granted'
    },
    (error: unknown) => {
      seen.state = error instanceof MirrorError ? error.code : String(error)
    },
  )
  return seen
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

describe('reservations', () => {
  it('are made in steps that grow with what has come, up to 8 MB, and no larger than what is expected', async () => {
    const { ledger } = new FakeDisk({ maxSize: 1_000 * MB })
    const reservation = await ledger.reserve()
    const steps = [reservation.bytes]
    for (let size = reservation.bytes + 1; size < 60 * MB; size = reservation.bytes + 1) {
      await reservation.cover(size)
      steps.push(reservation.bytes)
    }
    expect(steps.map((bytes) => bytes / MB)).toEqual([0.25, 0.5, 1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64])
    reservation[Symbol.dispose]()
    reservation[Symbol.dispose]()
    expect(ledger.reserved).toBe(0)

    const sized = await ledger.reserve()
    await sized.expect(9 * MB + 1)
    await sized.cover(9 * MB)
    expect(sized.bytes).toBe(9 * MB)
    await sized.cover(9 * MB + 1)
    expect(sized.bytes).toBe(9 * MB + 4_096)
  })

  it('without limits nothing waits, and everything is counted', async () => {
    const disk = new FakeDisk({}, { measured: false })
    const reservation = await disk.ledger.reserve()
    await reservation.cover(500 * MB)
    expect(disk.ledger.reserved).toBe(500 * MB)
    expect(disk.ledger.used).toBeUndefined()
  })

  it('wait under a limit until everything stored is added up', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB }, { measured: false })
    const reserved = watched(disk.ledger.reserve())
    await settle()
    expect(reserved.state).toBe('waits')
    disk.store(0)
    await settle()
    expect(reserved.state).toBe('granted')
  })

  it('an archive that is larger than the limit is refused before it comes, with words that say so', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    const reservation = await disk.ledger.reserve()
    const error = await failureOf(reservation.expect(10 * MB + 1))
    expect(error).toMatchObject({ code: 'STORAGE_FULL' })
    expect(error.message).toMatch(/larger|more than everything/)
    expect(error.message).toContain('archives.maxSize is 10.5 MB')
    expect(disk.evictions).toEqual([])
    await reservation.cover(10 * MB)
    expect(await failureOf(reservation.cover(10 * MB + 1))).toMatchObject({ code: 'STORAGE_FULL' })
  })
})

describe('a reservation that does not fit', () => {
  it('waits for what is evicted, and no more is evicted than it needs', async () => {
    const disk = new FakeDisk({ maxSize: 100 * MB })
    disk.store(93 * MB)
    disk.evictable = [3 * MB, 3 * MB, 3 * MB, 3 * MB]
    const reservation = await disk.ledger.reserve()
    await reservation.expect(12 * MB)
    await reservation.cover(12 * MB)
    expect(disk.used + disk.ledger.reserved).toBeLessThanOrEqual(100 * MB)
    expect(disk.evictions.filter((urgent) => urgent)).toHaveLength(2)
  })

  it('leaves a hundredth of the limit to evidence, which is never refused', async () => {
    const disk = new FakeDisk({ maxSize: 100 * MB })
    disk.store(90 * MB)
    const reservation = await disk.ledger.reserve()
    await reservation.expect(10 * MB)
    await reservation.cover(9 * MB)
    disk.evictable = [3 * MB]
    await reservation.cover(9 * MB + 1)
    expect(disk.evictions).toContain(true)
    expect(disk.used + disk.ledger.reserved).toBeLessThanOrEqual(99 * MB)
  })

  it('is served before younger ones, whenever it asks', async () => {
    const disk = new FakeDisk({ maxSize: 100 * MB })
    const [old, young] = [await disk.ledger.reserve(), await disk.ledger.reserve()]
    disk.busy = true
    disk.store(101 * MB)
    const asked = [watched(young.cover(3 * MB)), watched(old.cover(3 * MB)), watched(disk.ledger.reserve())]
    await settle()
    expect(asked.map(({ state }) => state)).toEqual(['waits', 'waits', 'waits'])
    disk.store(-4 * MB)
    await settle()
    expect(asked.map(({ state }) => state)).toEqual(['waits', 'granted', 'waits'])
  })

  it('goes over the limit if nothing can be evicted, and only one at a time does', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB + 200_000 })
    const reservations = await Promise.all(Array.from({ length: 5 }, () => disk.ledger.reserve()))
    for (const reservation of reservations) await reservation.cover(2 * MB)
    const [first, second, ...others] = reservations
    expect(disk.ledger.reserved).toBe(10 * MB)
    await first?.expect(6 * MB)
    await first?.cover(4 * MB)
    const waiting = watched(second?.cover(4 * MB) ?? Promise.reject())
    await settle()
    expect(waiting.state).toBe('waits')
    await first?.cover(6 * MB)
    expect(disk.ledger.reserved).toBe(14 * MB)
    if (first !== undefined) disk.commit(first)
    await settle()
    expect(waiting.state).toBe('waits')
    disk.store(-6 * MB)
    await settle()
    expect(waiting.state).toBe('granted')
    for (const other of others) other[Symbol.dispose]()
  })

  it('goes on although an older one waits, once it has gone over', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    const [old, young] = [await disk.ledger.reserve(), await disk.ledger.reserve()]
    await old.cover(5 * MB)
    await young.cover(5 * MB)
    await young.cover(6 * MB)
    const waiting = watched(old.cover(7 * MB))
    await settle()
    await young.cover(8 * MB)
    expect(waiting.state).toBe('waits')
    young[Symbol.dispose]()
    await settle()
    expect(waiting.state).toBe('granted')
  })

  it('goes on before an older one that begins to wait after it, once it has gone over', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    const [old, young] = [await disk.ledger.reserve(), await disk.ledger.reserve()]
    await old.cover(5 * MB)
    // Over what archives may fill.
    await young.cover(5 * MB)
    disk.busy = true
    const asked = [watched(young.cover(6 * MB)), watched(old.cover(7 * MB))]
    await settle()
    expect(asked.map(({ state }) => state)).toEqual(['granted', 'waits'])
    await vi.advanceTimersByTimeAsync(10_000)
    await young.cover(8 * MB)
    expect(asked[1]?.state).toBe('waits')
    young[Symbol.dispose]()
    await settle()
    expect(asked[1]?.state).toBe('granted')
  })

  it('is refused soon if what cannot be evicted is over the limit already, and says why', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    disk.pinned = 9 * MB
    disk.store(11 * MB)
    const refused = failureOf(disk.ledger.reserve())
    await vi.advanceTimersByTimeAsync(4_000)
    const error = await refused
    expect(error).toMatchObject({ code: 'STORAGE_FULL' })
    expect(error.message).toContain('archives.maxSize is 10.5 MB, of which 11.5 MB are used')
    expect(error.message).toContain('9.44 MB are pinned')
    expect(disk.ledger.reserved).toBe(0)
  })

  it('what has just come in has time to be recorded before anybody is refused', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    disk.store(11 * MB)
    const waiting = watched(disk.ledger.reserve())
    await vi.advanceTimersByTimeAsync(2_000)
    disk.evictable = [5 * MB]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(waiting.state).toBe('granted')
  })

  it('is refused after a minute in which nothing moved, and not before', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    disk.busy = true
    disk.store(11 * MB)
    const waiting = watched(disk.ledger.reserve())
    await vi.advanceTimersByTimeAsync(50_000)
    disk.store(-MB / 4)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(waiting.state).toBe('waits')
    await vi.advanceTimersByTimeAsync(3_000)
    expect(waiting.state).toBe('STORAGE_FULL')
  })

  it('is refused after a quarter of an hour although others go on', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    disk.busy = true
    disk.store(11 * MB)
    const waiting = watched(disk.ledger.reserve())
    for (let minute = 0; minute < 14; minute++) {
      disk.store(-1)
      await vi.advanceTimersByTimeAsync(55_000)
    }
    expect(waiting.state).toBe('waits')
    for (let minute = 0; minute < 4; minute++) {
      disk.store(-1)
      await vi.advanceTimersByTimeAsync(55_000)
    }
    expect(waiting.state).toBe('STORAGE_FULL')
  })

  it('leaves the queue when its signal fires, and the next one is served', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB })
    disk.busy = true
    disk.store(11 * MB)
    const controller = new AbortController()
    const [gone, next] = [watched(disk.ledger.reserve(controller.signal)), watched(disk.ledger.reserve())]
    await settle()
    controller.abort(new MirrorError('SHUTTING_DOWN', 'gone', {}))
    disk.store(-5 * MB)
    await settle()
    expect([gone.state, next.state]).toEqual(['SHUTTING_DOWN', 'granted'])
  })

  it('ends when the process stops, also before anything is added up', async () => {
    const disk = new FakeDisk({ maxSize: 10 * MB }, { measured: false })
    const waiting = watched(disk.ledger.reserve())
    await settle()
    disk.shutdown.abort(new MirrorError('SHUTTING_DOWN', 'stopping', {}))
    await settle()
    expect(waiting.state).toBe('SHUTTING_DOWN')
    expect(await failureOf(disk.ledger.reserve())).toMatchObject({ code: 'SHUTTING_DOWN' })
  })
})

describe('in the background', () => {
  it('space is made from 95 % of the limit down to 90 %', async () => {
    const disk = new FakeDisk({ maxSize: 100 * MB })
    disk.evictable = Array.from({ length: 50 }, () => MB)
    disk.store(95 * MB)
    await settle()
    expect(disk.used).toBe(95 * MB)
    disk.store(1)
    await settle()
    expect(disk.used).toBe(90 * MB + 1 - MB)
    expect(disk.evictions.every((urgent) => !urgent)).toBe(true)
  })

  it('what is reserved counts like what is stored', async () => {
    const disk = new FakeDisk({ maxSize: 100 * MB })
    disk.evictable = Array.from({ length: 50 }, () => MB)
    disk.store(90 * MB)
    const reservation = await disk.ledger.reserve()
    await reservation.cover(6 * MB)
    await settle()
    expect(disk.used).toBeLessThanOrEqual(84 * MB)
  })
})

describe('minFree', () => {
  it('is kept by evicting, and counts what is reserved and not written yet', async () => {
    const disk = new FakeDisk({ minFree: 100 * MB })
    disk.free = 103 * MB
    disk.evictable = [MB, MB, MB, MB, MB]
    const reservation = await disk.ledger.reserve()
    await reservation.cover(4 * MB)
    expect(disk.free - reservation.bytes).toBeGreaterThanOrEqual(100 * MB)
    // Written bytes have left the disk's free space, and must not count twice.
    disk.free -= 4 * MB
    reservation.wrote(4 * MB)
    const before = disk.evictions.filter((urgent) => urgent).length
    disk.free += 10 * MB
    await reservation.cover(8 * MB)
    expect(disk.evictions.filter((urgent) => urgent)).toHaveLength(before)
  })

  it('a disk that is fuller from the start is no place for anything new, and what may be evicted is', async () => {
    const disk = new FakeDisk({ minFree: 100 * MB })
    disk.store(10 * MB)
    disk.free = 50 * MB
    disk.evictable = [2 * MB, 3 * MB]
    const refused = failureOf(disk.ledger.reserve())
    await vi.advanceTimersByTimeAsync(4_000)
    const error = await refused
    expect(error).toMatchObject({ code: 'STORAGE_FULL' })
    expect(error.message).toContain('archives.minFree is 105 MB, and the disk has 57.7 MB free')
    expect(disk.used).toBe(5 * MB)
  })

  it('others who fill the disk are found by looking at it', async () => {
    const disk = new FakeDisk({ minFree: 100 * MB })
    disk.store(50 * MB)
    disk.evictable = Array.from({ length: 50 }, () => MB)
    disk.free = 103 * MB
    await disk.ledger.look()
    await settle()
    expect(disk.free).toBe(110 * MB)
  })

  it('what the disk can never hold is refused before it comes', async () => {
    const disk = new FakeDisk({ minFree: 100 * MB })
    disk.store(10 * MB)
    disk.free = 120 * MB
    const reservation = await disk.ledger.reserve()
    await reservation.expect(30 * MB)
    const error = await failureOf(reservation.expect(31 * MB))
    expect(error).toMatchObject({ code: 'STORAGE_FULL' })
    expect(error.message).toContain('archives.minFree keeps 105 MB free')
  })

  it('a disk that cannot be asked refuses those who wait, and does not hang', async () => {
    const disk = new FakeDisk({ minFree: 100 * MB })
    const broken = new SpaceLedger({
      limits: disk.ledger.limits,
      diskFree: async () => {
        throw new MirrorError('STORAGE_FAILED', 'cannot look', { operation: 'look at' })
      },
      shutdown: disk.shutdown.signal,
      onFailure: () => undefined,
    })
    expect(await failureOf(broken.reserve())).toMatchObject({ code: 'STORAGE_FAILED' })
  })
})
