import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parsePlatform } from '../../../src/protocol/platform.ts'
import type { BlobStore } from '../../../src/store/blob-store.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { MemoryBlobStore } from '../../../src/store/memory/memory-blob-store.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import type { RecordStore } from '../../../src/store/record-store.ts'
import { PROCESS_ENV } from '../../e2e/mirror-fixture.ts'
import { createParts, everything, newCall, recordingLog, v1, widget } from '../parts-fixture.ts'
import { ScriptedUpstream } from '../scripted-upstream.ts'
import { createCare, servedBy } from './care-fixture.ts'

const id = { address: widget, version: v1 }
const request = { address: 'acme/widget', version: '1.0.0' }
const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64']
const bytes = (generation: number) => (platform: string) =>
  Buffer.from(platform === 'darwin_arm64' ? 'same in all' : `${platform} ${generation}`)

/** Both stores of a process that dies before its so-manieth change of them. */
function dying(records: RecordStore, blobs: BlobStore, changesLeft: number) {
  let left = changesLeft
  const change = <T>(action: () => Promise<T>): Promise<T> => {
    if (left <= 0) return new Promise(() => undefined)
    left -= 1
    return action()
  }
  const proxy = <Store extends object>(store: Store, changing: readonly string[]): Store =>
    new Proxy(store, {
      get: (target, name) => {
        const found = Reflect.get(target, name)
        if (typeof found !== 'function') return found
        const call = (...args: unknown[]) => found.apply(target, args)
        return changing.includes(String(name)) ? (...args: unknown[]) => change(() => call(...args)) : call
      },
    })
  return {
    records: proxy(records, ['put', 'delete']),
    blobs: proxy(blobs, ['put', 'create', 'delete', 'setAside']),
    died: () => left === 0,
  }
}

/** Holds every platform of the first generation; the upstream offers the second. */
async function stage(stores: { records: RecordStore; blobs: BlobStore }) {
  const upstream = new ScriptedUpstream()
  const parts = createParts({ ...stores, upstream })
  await upstream.publish('1.0.0', { bytes: bytes(1) })
  for (const name of PLATFORMS) {
    const { value } = await parts.archives.open(everything, { ...id, platform: parsePlatform(name) }, newCall())
    await value[Symbol.asyncDispose]()
  }
  const old = await servedBy(parts, id)
  await upstream.publish('1.0.0', { bytes: bytes(2) })
  return { upstream, old, offered: Object.fromEntries(PLATFORMS.map((name) => [name, upstream.digest('1.0.0', name)])) }
}

/** What is held, as a process that starts now sees it: the old state or the new one, whole. */
async function judge(
  parts: ReturnType<typeof createParts>,
  staged: Awaited<ReturnType<typeof stage>>,
): Promise<'old' | 'new'> {
  const state = await servedBy(parts, id)
  if (isDeepStrictEqual(state, staged.old)) return 'old'
  expect(state.told).toEqual(staged.offered)
  for (const [name, digest] of Object.entries(state.given)) expect([name, digest]).toEqual([name, staged.offered[name]])
  expect(state.given).toEqual({ darwin_arm64: staged.offered.darwin_arm64 })
  return 'new'
}

describe('a process that dies while it replaces a release', () => {
  it('leaves the old generation or the new one, at every step of it, before and after the next start', async () => {
    const seen: string[] = []
    for (let step = 0; ; step++) {
      const stores = { records: new MemoryRecordStore(), blobs: new MemoryBlobStore() }
      const staged = await stage(stores)
      const mortal = dying(stores.records, stores.blobs, step)
      const process = await createCare({ ...mortal, upstream: staged.upstream })
      const outcome = await Promise.race([
        process.refresh.refresh(request, { accept: true }).then(() => 'ended'),
        expect
          .poll(() => mortal.died(), { timeout: 5_000 })
          .toBe(true)
          .then(() => delay(5, 'died')),
      ])
      const next = createParts({ ...stores, upstream: staged.upstream })
      const state = await judge(next, staged)
      await next.replacement.resume()
      expect(await judge(createParts(stores), staged)).toBe(state)
      expect(await stores.records.children(['replacements'])).toEqual([])
      expect((await next.catalogue.records.readRetired(widget, v1)).size).toBe(0)
      // Between a record and its blob a crash leaves a blob that nobody names: `verify` finds it.
      const stale = await stores.blobs.stat(String(staged.old.given.linux_amd64))
      if (state === 'old') expect(stale).toBeDefined()
      if (outcome === 'ended') expect(stale).toBeUndefined()
      seen.push(state)
      if (outcome === 'ended') break
    }
    // The old one while evidence is written, the new one while the old archives are removed.
    expect(seen.indexOf('new')).toBeGreaterThan(2)
    expect(seen.lastIndexOf('old')).toBe(seen.indexOf('new') - 1)
    expect(seen.length - seen.indexOf('new')).toBeGreaterThan(5)
  })

  it('with SIGKILL, on a real disk, leaves the old generation or the new one', { timeout: 60_000 }, async () => {
    const records = ['records', 'providers', widget.hostname, 'acme', 'widget', 'versions', '1.0.0']
    // Each kill waits for one more thing on the disk.
    const moments: [string, (dataDir: string) => Promise<boolean>][] = [
      ['begun', async (dataDir) => existsSync(join(dataDir, 'records', 'replacements'))],
      [
        'released',
        async (dataDir) => (await textOf(join(dataDir, ...records, 'release.json'))).includes('"generation": 2'),
      ],
      ['removing', async (dataDir) => !existsSync(join(dataDir, ...records, 'archives', 'linux_amd64.json'))],
    ]
    const seen: string[] = []
    for (const [moment, hasCome] of moments) {
      const dataDir = await mkdtemp(join(tmpdir(), 'test-replacement-'))
      try {
        const process = fileURLToPath(new URL('./refresh-process.ts', import.meta.url))
        using child = fork(process, [dataDir], { env: PROCESS_ENV })
        const exited = once(child, 'exit')
        // It tells when everything is held and it begins to replace.
        await Promise.race([once(child, 'message'), exited])
        for (const end = performance.now() + 5_000; !(await hasCome(dataDir)); await delay(0.2))
          if (performance.now() > end) throw new Error(`nothing was ${moment} in 5 s`)
        child.kill('SIGKILL')
        await exited
        seen.push(`${moment}: ${await judgeFolder(dataDir)}`)
      } finally {
        await rm(dataDir, { recursive: true, force: true })
      }
    }
    console.info(seen.join(', '))
    expect(seen).toContain('removing: new')
  })
})

async function textOf(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch(() => '')
}

async function judgeFolder(dataDir: string): Promise<'old' | 'new'> {
  await using folder = await openDataFolder({ dataDir, log: recordingLog().log })
  const blobs = new CheckedBlobStore(folder.blobs, { recheckAfterMs: 1e9, now: Date.now, onDamaged: () => undefined })
  const staged = await stage({ records: new MemoryRecordStore(), blobs: new MemoryBlobStore() })
  const next = createParts({ records: folder.records, blobs })
  const state = await judge(next, staged)
  await next.replacement.resume()
  expect(await judge(createParts({ records: folder.records, blobs }), staged)).toBe(state)
  expect(await readdir(join(dataDir, 'quarantine'))).toEqual([])
  return state
}
