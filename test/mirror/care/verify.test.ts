import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Restoration } from '../../../src/mirror/care/restoration.ts'
import { type ScrubObserver, Verify, type VerifyRequest } from '../../../src/mirror/care/verify.ts'
import { ClientWork } from '../../../src/mirror/client-work.ts'
import { Jobs } from '../../../src/mirror/jobs/jobs.ts'
import { parsePlatform } from '../../../src/protocol/platform.ts'
import { BlobLeases } from '../../../src/store/blob-leases.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { type DataFolder, openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import { everything, newCall, recordingLog, v1, widget } from '../parts-fixture.ts'
import { moduleId } from '../scripted-module-upstream.ts'
import { outage } from '../scripted-upstream.ts'
import { createCare } from './care-fixture.ts'

const linux = parsePlatform('linux_amd64')
const arm = parsePlatform('linux_arm64')
const WIDGET = 'registry.example.test/acme/widget 1.0.0'
const NET = 'registry.example.test/acme/net/aws 1.0.0'
const everythingAtAll: VerifyRequest = { prefix: '', repair: true }

let dataDir: string
let folder: DataFolder
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'test-verify-'))
  folder = await openDataFolder({ dataDir, log: recordingLog().log })
})
afterEach(async () => {
  await folder[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

/** Over the real folder: two packages of one version, and a module. */
async function filled({ isSealed = false } = {}) {
  const damaged: string[] = []
  const onDamaged = (digest: string): void => void damaged.push(digest)
  const checked = new CheckedBlobStore(folder.blobs, { recheckAfterMs: 1e12, now: Date.now, onDamaged })
  const stores = { records: folder.records, blobs: checked }
  const online = await createCare(stores)
  await online.upstream.publish('1.0.0')
  const digests = []
  for (const platform of [linux, arm]) {
    const { value } = await online.archives.open(everything, { address: widget, version: v1, platform }, newCall())
    digests.push(value.digest)
    await value[Symbol.asyncDispose]()
  }
  const { value: module } = await online.module.modules.locate(everything, moduleId('net'), newCall())
  await expect.poll(async () => (await folder.records.children(['hashes'])).length).toBe(2)
  const care = isSealed ? await createCare(stores, { isSealed }) : online
  const { inventory, catalogue, moduleCatalogue, removal, records, blobs, archives, releases, log } = care
  const observed: string[] = []
  const observer: ScrubObserver = {
    scrubbed: ({ result }) => void observed.push(result),
    scrubEnded: ({ orphans, dangling }) => void observed.push(`ended ${orphans} ${dangling}`),
  }
  const leases = new BlobLeases()
  const modules = care.module.modules
  const restoration = new Restoration({ isSealed, view: everything, archives, modules, releases, blobs, removal })
  const verify = new Verify({
    ...{ catalogue, moduleCatalogue, inventory, removal, records, blobs, checked, leases, restoration, log },
    ...{ rate: 1e12, observer, now: Date.now },
  })
  const jobs = new Jobs({ store: new MemoryStateStore(), clientWork: new ClientWork(), now: Date.now, log })
  jobs.register(verify)
  const run = async (request: VerifyRequest) => {
    const { id } = await jobs.start(verify, request)
    await expect.poll(() => jobs.get(id).state, { timeout: 10_000 }).toMatch(/done|failed|cancelled/)
    const { items } = await jobs.items(id, { limit: 100 })
    expect(jobs.get(id)).toMatchObject({ state: 'done' })
    return Object.fromEntries(items.map(({ item, outcome, reason }) => [item, { outcome, reason }]))
  }
  const [first = '', second = ''] = digests
  return { ...care, jobs, verify, leases, run, first, second, module, moduleParts: care.module, damaged, observed }
}

function pathOf(digest: string): string {
  return join(dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest)
}

async function damage(digest: string): Promise<void> {
  await rm(pathOf(digest), { force: true })
  await writeFile(pathOf(digest), 'rotten')
}

const done = { outcome: 'done', reason: undefined }

describe('verifying', () => {
  it('hashes everything that is held, evidence too, and finds nothing where nothing is wrong', async () => {
    const { run, observed, digests: _, ...care } = { digests: 0, ...(await filled()) }
    expect(await run(everythingAtAll)).toEqual({
      ...{ [WIDGET]: done, [NET]: done, records: done, 'files that no record names': done },
    })
    const stored = await Array.fromAsync(folder.blobs.list())
    expect(observed).toEqual([...stored.map(() => 'good'), 'ended 0 0'])
    expect(stored.map(({ digest }) => digest)).toContain(care.first)
  })

  it('sets aside what is damaged, with its bytes, and fetches it again', async () => {
    const { run, first, damaged, upstream, observed } = await filled()
    await damage(first)
    upstream.asked.length = 0
    const result = await run(everythingAtAll)
    expect(result[`${WIDGET} linux_amd64`]).toEqual({
      outcome: 'done',
      reason: expect.stringMatching(
        new RegExp(`damaged: its SHA-256 is [0-9a-f]{64}, not ${first}.*it was fetched again`),
      ),
    })
    expect(result[WIDGET]).toMatchObject({ outcome: 'done', reason: expect.stringContaining('fetched again') })
    expect([damaged, upstream.count('archive')]).toEqual([[first], 1])
    expect(await readdir(join(dataDir, 'quarantine'))).toEqual([first])
    expect((await folder.blobs.read(first))?.length).toBeGreaterThan(6)
    expect(observed.filter((each) => each === 'damaged')).toHaveLength(1)
  })

  it('a module that is damaged comes again too', async () => {
    const { run, module, moduleParts } = await filled()
    await damage(module.digest)
    expect((await run(everythingAtAll))[NET]).toMatchObject({
      outcome: 'done',
      reason: expect.stringContaining('again'),
    })
    expect(moduleParts.upstream.opened).toBe(2)
    expect(await folder.blobs.read(module.digest)).toBeDefined()
  })

  it('evidence that is damaged is asked for again', async () => {
    const { run, catalogue } = await filled()
    const { release } = await catalogue.version(widget, v1)
    const authentication = release?.platforms.linux_amd64?.authentication
    const sums = authentication?.rule === 'unsigned-checksums' ? authentication.sums : ''
    await damage(sums)
    expect((await run(everythingAtAll))[WIDGET]).toEqual({
      outcome: 'done',
      reason: expect.stringContaining('evidence of it (SHA256SUMS, signature or keys) was damaged'),
    })
    expect((await folder.blobs.read(sums))?.toString()).toContain('widget_1.0.0_linux_amd64.zip')
  })

  it('only what begins with a prefix, if there is one', async () => {
    const { run, first, second, observed } = await filled()
    await damage(first)
    await damage(second)
    const result = await run({ prefix: `${WIDGET} linux_arm`, repair: true })
    expect(Object.keys(result).sort()).toEqual([WIDGET, `${WIDGET} linux_arm64`])
    expect(observed).toEqual(['damaged'])
    expect(await run({ prefix: 'registry.example.test/acme/net', repair: true })).toEqual({ [NET]: done })
    expect(await run({ prefix: 'other.example.test/', repair: true })).toEqual({})
  })

  it('a record whose file is gone: fetched again; kept while the origin is away; removed if it has other bytes now', async () => {
    const { run, first, upstream, inventory, observed } = await filled()
    const name = `${WIDGET} linux_amd64`
    await rm(pathOf(first))
    upstream.beforeArchive = () => Promise.reject(outage())
    expect((await run(everythingAtAll))[name]).toMatchObject({
      outcome: 'failed',
      reason: expect.stringMatching(/is missing.*it cannot be fetched again: no route/),
    })
    expect(observed).toContain('missing')
    expect(observed.at(-1)).toBe('ended 0 1')
    expect(inventory.get(name)).toBeDefined()
    upstream.beforeArchive = () => undefined
    expect((await run(everythingAtAll))[name]).toMatchObject({ outcome: 'done' })
    await rm(pathOf(first))
    await upstream.publish('1.0.0', { generation: 2 })
    expect((await run(everythingAtAll))[name]).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('not held any more'),
    })
    expect(inventory.get(name)).toBeUndefined()
  })

  it('repairs nothing if it must not, but sets aside', async () => {
    const { run, first, upstream } = await filled()
    await damage(first)
    await folder.blobs.put(Buffer.from('orphan'))
    const { digest } = await folder.blobs.put(Buffer.from('orphan'))
    await utimes(pathOf(digest), 1_000, 1_000)
    await folder.records.put(['hashes', digest], { format: 1, h1: [] })
    upstream.asked.length = 0
    const result = await run({ prefix: '', repair: false })
    expect(result[`${WIDGET} linux_amd64`]).toMatchObject({ outcome: 'failed' })
    expect([upstream.asked, await readdir(join(dataDir, 'quarantine'))]).toEqual([[], [first]])
    expect(await folder.blobs.stat(digest)).toBeDefined()
    expect(await folder.records.get(['hashes', digest])).toBeDefined()
    expect(result['files that no record names']).toMatchObject({ reason: '1 files (6 bytes) were named by no record' })
  })

  it('removes files that no record names, but none that is young or in use', async () => {
    const { run, leases, inventory } = await filled()
    const [old, young, read, claimed] = await Promise.all(
      ['old', 'young', 'read', 'claimed'].map(async (text) => (await folder.blobs.put(Buffer.from(text))).digest),
    )
    if (!old || !young || !read || !claimed) throw new Error('not stored')
    for (const digest of [old, read, claimed]) await utimes(pathOf(digest), 1_000, 1_000)
    using _lease = await leases.lease(read)
    using _claim = await inventory.claims.claim([claimed])
    const result = await run(everythingAtAll)
    expect(result['files that no record names']).toEqual({
      ...{ outcome: 'done', reason: '1 files (3 bytes) were named by no record, and were removed' },
    })
    const left = await Promise.all([old, young, read, claimed].map((digest) => folder.blobs.stat(digest)))
    expect(left.map((stat) => stat !== undefined)).toEqual([false, true, true, true])
  })

  it('removes what was computed of archives that nobody holds', async () => {
    const { run, first } = await filled()
    const gone = 'f'.repeat(64)
    await folder.records.put(['hashes', gone], { format: 1, h1: [] })
    await folder.records.put(['calls', gone], { format: 1, folders: null })
    const result = await run(everythingAtAll)
    expect(result.records).toMatchObject({ outcome: 'done', reason: expect.stringContaining('(and 1 more)') })
    expect([await folder.records.children(['calls']), await folder.records.children(['hashes'])]).toEqual([
      [],
      expect.arrayContaining([first]),
    ])
    expect(await folder.records.get(['hashes', gone])).toBeUndefined()
  })

  it('makes records anew that cannot be read, without fetching archives that are there', async () => {
    const before = await filled()
    const version = ['providers', widget.hostname, 'acme', 'widget', 'versions', '1.0.0']
    await folder.records.put([...version, 'archives', 'linux_amd64'], { format: 9 })
    await folder.records.put(['modules', widget.hostname, 'acme', 'net', 'aws', '1.0.0'], 'nonsense')
    const { run, upstream, moduleParts } = await filled()
    upstream.asked.length = 0
    await folder.records.put([...version, 'archives', 'linux_arm64'], { format: 9 })
    const care = await createCare({ records: folder.records, blobs: before.blobs, upstream })
    expect((await care.catalogue.version(widget, v1)).archives.has('linux_arm64')).toBe(false)
    const result = await run(everythingAtAll)
    expect(result.records?.reason).toMatch(/linux_arm64 cannot be read/)
    expect(upstream.count('archive')).toBe(0)
    expect(moduleParts.upstream.opened).toBeLessThanOrEqual(1)
  })

  it('asks no origin where the mirror is sealed, and keeps the record', async () => {
    const { run, first, upstream, inventory } = await filled({ isSealed: true })
    await damage(first)
    upstream.asked.length = 0
    const result = await run(everythingAtAll)
    expect(result[`${WIDGET} linux_amd64`]).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('sealed'),
    })
    expect(upstream.asked).toEqual([])
    expect(inventory.get(`${WIDGET} linux_amd64`)).toBeDefined()
  })

  it('goes on after a restart without what is settled, and can be cancelled', async () => {
    const { verify, observed, jobs } = await filled()
    const settled = new Map([[WIDGET, { item: WIDGET, outcome: 'done' as const, bytes: 0 }]])
    const items: string[] = []
    await verify.run(
      { prefix: 'registry', repair: true },
      {
        ...{ signal: new AbortController().signal, settled, add: () => undefined, progress: () => undefined },
        settle: (item) => void items.push(item),
        lose: () => undefined,
        each: async (each, work) => {
          for await (const one of each) await work(one)
        },
      },
    )
    expect([items, observed]).toEqual([[NET], ['good']])
    const { id } = await jobs.start(verify, { prefix: '', repair: true, rate: 1 })
    await jobs.cancel(id)
    expect(jobs.get(id).state).toBe('cancelled')
  })

  it('keeps to its rate, and nobody waits for it meanwhile', { timeout: 30_000 }, async () => {
    const { run, archives, verify: _, checked: __, ...care } = { checked: 0, ...(await filled()) }
    await care.upstream.publish('2.0.0', { platforms: ['linux_amd64'], bytes: () => Buffer.alloc(8_000_000, 'x') })
    const version = (await care.versions.list(everything, widget, newCall())).value.find((each) => each === '2.0.0')
    const listed =
      version ??
      (await care.versions.renew(widget, newCall())).versions.find((each) => each.version === '2.0.0')?.version
    if (listed === undefined) throw new Error('not listed')
    const id = { address: widget, version: listed, platform: linux }
    await (await archives.open(everything, id, newCall())).value[Symbol.asyncDispose]()
    const delays = monitorEventLoopDelay({ resolution: 1 })
    delays.enable()
    const start = performance.now()
    const running = run({ prefix: 'registry.example.test/acme/widget 2', repair: true, rate: 8_000_000 })
    // A client that opens the same archive meanwhile has it at once.
    let isOver = false
    const over = running.then(() => {
      isOver = true
    })
    await (await archives.open(everything, id, newCall())).value[Symbol.asyncDispose]()
    expect(isOver).toBe(false)
    await over
    delays.disable()
    const seconds = (performance.now() - start) / 1_000
    console.info(
      `8 MB at 8 MB/s took ${seconds.toFixed(2)} s; event loop p99 ${(delays.percentile(99) / 1e6).toFixed(1)} ms`,
    )
    expect(seconds).toBeGreaterThan(0.85)
  })
})
