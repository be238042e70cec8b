import { describe, expect, it } from 'vitest'
import type { PackageId } from '../../src/mirror/stock/item-name.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { createParts, everything, failureOf, newCall, settle, type TestParts, v1, widget } from './parts-fixture.ts'
import { outage } from './scripted-upstream.ts'

const linux: PackageId = { address: widget, version: v1, platform: parsePlatform('linux_amd64') }

async function published(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = createParts(options)
  await parts.upstream.publish('1.0.0')
  return parts
}

function obtain({ archives }: TestParts, leaving: AbortSignal) {
  return archives.obtain(everything, linux, { call: { ...newCall(), leaving } })
}

/** Never answers, and notes the reason for which it is given up. */
function hanging() {
  const reasons: unknown[] = []
  const wait = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) =>
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        reject(signal.reason)
      }),
    )
  return { reasons, wait }
}

describe('an archive that a job obtains', () => {
  it('is held then, and found without asking anybody the next time', async () => {
    const parts = await published()
    const { signal } = new AbortController()
    const { value, outcome } = await obtain(parts, signal)
    expect([outcome, value.digest]).toEqual(['miss', parts.upstream.digest('1.0.0', 'linux_amd64')])
    const { asked } = parts.upstream
    const before = asked.length
    expect(await obtain(parts, signal)).toMatchObject({ outcome: 'hit', value: { digest: value.digest } })
    expect(asked.length).toBe(before)
  })

  it('tells how far it is while it comes', async () => {
    const parts = await published()
    const gate = Promise.withResolvers<void>()
    const reports: unknown[] = []
    parts.upstream.pieces = (bytes) => slowly(bytes, gate.promise)
    const done = parts.archives.obtain(everything, linux, {
      call: { ...newCall(), leaving: new AbortController().signal },
      onProgress: (arrived) => {
        if (arrived.bytes === 0) return
        reports.push({ ...arrived })
        gate.resolve()
      },
    })
    await done
    expect(reports[0]).toEqual({ bytes: 10, size: 30 })
  })
})

/** Ten bytes, and the rest when the gate opens. */
function slowly(bytes: Buffer, gate: Promise<void>) {
  const pieces = async function* () {
    yield { kind: 'bytes', bytes: bytes.subarray(0, 10) } as const
    await gate
    yield { kind: 'bytes', bytes: bytes.subarray(10) } as const
  }
  return pieces() as unknown as Iterable<never>
}

describe('a job that leaves', () => {
  for (const step of ['beforeVersions', 'beforeRelease', 'beforeArchive'] as const) {
    it(`takes what it alone waits for with it: ${step.slice('before'.length)}`, async () => {
      const blobs = new MemoryBlobStore()
      const parts = await published({ blobs })
      const { reasons, wait } = hanging()
      parts.upstream[step] = (...args: unknown[]) => wait(args.at(-1) as AbortSignal)
      const leaving = new AbortController()
      const outcome = failureOf(obtain(parts, leaving.signal))
      await expect.poll(() => parts.upstream.asked.length, { timeout: 20_000 }).toBeGreaterThan(0)
      await settle()
      const reason = new Error('cancelled')
      leaving.abort(reason)
      expect(await outcome).toBe(reason)
      await parts.archives.idle()
      expect(reasons).toEqual([reason])

      // The next one begins anew, and nothing of what happened is held against the origin.
      parts.upstream[step] = () => undefined
      expect(await obtain(parts, new AbortController().signal)).toMatchObject({ outcome: 'miss' })
    })
  }

  it('leaves a client the download that both wait for', async () => {
    const parts = await published()
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeArchive = () => gate.promise
    const leaving = new AbortController()
    const job = failureOf(obtain(parts, leaving.signal))
    const client = parts.archives.open(everything, linux, newCall())
    await settle()
    leaving.abort(new Error('cancelled'))
    expect(await job).toMatchObject({ message: 'cancelled' })
    gate.resolve()
    const { value, outcome } = await client
    expect(outcome).toBe('coalesced')
    await value[Symbol.asyncDispose]()
    expect(parts.upstream.count('archive')).toBe(1)
  })

  it('does not end the download that a client began', async () => {
    const parts = await published()
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeArchive = () => gate.promise
    const client = parts.archives.open(everything, linux, newCall())
    await settle()
    const leaving = new AbortController()
    const job = failureOf(obtain(parts, leaving.signal))
    await settle()
    leaving.abort(new Error('cancelled'))
    await job
    gate.resolve()
    await using _ = (await client).value
    expect(parts.upstream.count('archive')).toBe(1)
  })
})

it('the digest that an archive must have is told by its evidence alone', async () => {
  const parts = await published()
  expect(await parts.archives.expect(everything, linux, newCall())).toBe(parts.upstream.digest('1.0.0', 'linux_amd64'))
  expect(parts.upstream.count('archive')).toBe(0)
  parts.upstream.beforeVersions = () => Promise.reject(outage())
  const other = { ...linux, address: { ...widget, type: 'other' } }
  expect(await failureOf(parts.archives.expect(everything, other, newCall()))).toMatchObject({
    code: 'UPSTREAM_UNREACHABLE',
  })
})
