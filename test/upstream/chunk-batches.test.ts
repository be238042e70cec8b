import { PassThrough, Readable } from 'node:stream'
import { setImmediate as endOfTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ChunkBatches, lengthOf } from '../../src/upstream/chunk-batches.ts'

const KIB = 1024
const BATCH = 256 * KIB

/** A stream that pushes what it is told, whether anybody reads or not, as a socket does. */
function openStream(): Readable {
  return new Readable({ read: () => undefined })
}

test('records that come together are one batch, in their order, and are not copied', async () => {
  const stream = openStream()
  const batches = new ChunkBatches(stream)
  const records = Array.from({ length: 5 }, (_, index) => Buffer.alloc(16 * KIB, index))
  const first = batches.next()
  await endOfTurn()
  for (const record of records) {
    stream.push(record)
    // Between the records of one read of a socket, promises have their turn.
    await undefined
  }
  const batch = (await first) ?? []
  expect(batch.length).toBe(5)
  expect(batch.every((chunk, index) => chunk === records[index])).toBe(true)
})

test('the first bytes go at once; later ones wait a moment for more, never for a whole batch', {
  timeout: 10_000,
}, async () => {
  const stream = openStream()
  const batches = new ChunkBatches(stream)
  stream.push('first')
  expect(Buffer.concat((await batches.next()) ?? []).toString()).toBe('first')
  const next = batches.next()
  await endOfTurn()
  stream.push('one')
  for (let step = 0; step < 20; step++) await undefined
  stream.push('two')
  expect(Buffer.concat((await next) ?? []).toString()).toBe('onetwo')
})

test('who does not take the batch holds the stream up: one is read ahead, whatever the size of its chunks', async () => {
  for (const size of [16 * KIB, 1]) {
    let pushed = 0
    const stream = new Readable({
      highWaterMark: 16 * KIB,
      read() {
        pushed += size
        setImmediate(() => this.push(Buffer.alloc(size)))
      },
    })
    const batches = new ChunkBatches(stream)
    await sleep(100)
    const most = size === 1 ? 1024 : BATCH
    expect(pushed).toBeGreaterThan(size * 8)
    expect(pushed).toBeLessThanOrEqual(most + 16 * KIB + size)
    expect(lengthOf((await batches.next()) ?? [])).toBeLessThanOrEqual(most)
    stream.destroy()
  }
})

test('all that came before a failure is handed over before it is told', async () => {
  const stream = openStream()
  const batches = new ChunkBatches(stream)
  stream.push(Buffer.alloc(BATCH))
  stream.push('rest')
  expect(lengthOf((await batches.next()) ?? [])).toBe(BATCH)
  await sleep(1)
  expect(batches.empty).toBe(false)
  stream.destroy(new Error('reset by peer'))
  expect(Buffer.concat((await batches.next()) ?? []).toString()).toBe('rest')
  await expect(batches.next()).rejects.toThrow('reset by peer')
})

test('a stream that ended or failed before anybody asked is told so', async () => {
  const ended = new PassThrough()
  ended.end()
  expect(await new ChunkBatches(ended).next()).toBeUndefined()
  const failed = openStream().on('error', () => undefined)
  failed.destroy(new Error('too late'))
  await sleep(1)
  await expect(new ChunkBatches(failed).next()).rejects.toThrow('too late')
})
