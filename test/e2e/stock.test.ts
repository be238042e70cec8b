import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { type SpawnedMirror, spawnMirror, startMirror, type TestMirror } from './mirror-fixture.ts'

/* What is held and used is known across restarts and crashes. */

const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64']

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: PLATFORMS })
})
afterAll(() => origin[Symbol.asyncDispose]())

async function stateLine(mirror: TestMirror): Promise<string> {
  const page = (await mirror.ask('/', { headers: { accept: 'text/html' } })).body.toString()
  return /<p class="state">.*<\/p>/.exec(page)?.[0] ?? ''
}

async function usedItems(mirror: TestMirror): Promise<Map<string, number>> {
  const text = await readFile(join(mirror.dataDir, 'state', 'journals', 'usage.ndjson'), 'utf8').catch(() => '')
  const hits = new Map<string, number>()
  for (const line of text.split('\n').filter((each) => each !== '')) {
    for (const [name, , count] of JSON.parse(line).used ?? []) hits.set(name, count)
  }
  return hits
}

async function download(mirror: TestMirror, platform: string): Promise<void> {
  expect((await mirror.archive('acme/widget', '1.0.0', platform)).status).toBe(200)
}

test('what is held is counted after a restart, after kill -9, and with a lost or damaged inventory', async () => {
  await using mirror: SpawnedMirror = await spawnMirror({ origin })
  await expect.poll(() => stateLine(mirror)).toContain('0 packages held')
  for (const platform of PLATFORMS) await download(mirror, platform)
  expect(await stateLine(mirror)).toContain('3 packages held')
  await mirror.restart()
  await expect.poll(() => stateLine(mirror)).toContain('3 packages held')
  await mirror.kill()
  await mirror.start()
  await expect.poll(() => stateLine(mirror)).toContain('3 packages held')
  const inventory = join(mirror.dataDir, 'inventory.ndjson')
  for (const damage of [() => rm(inventory), () => writeFile(inventory, '\0garbage\n{"torn')]) {
    await mirror.kill()
    await damage()
    await mirror.start()
    await expect.poll(() => stateLine(mirror)).toContain('3 packages held')
  }
  expect((await stat(join(mirror.dataDir, 'state'))).mode & 0o077).toBe(0)
})

test('hits are kept across restarts, at once in good order, and from batch to batch for a crash', async () => {
  await using mirror: SpawnedMirror = await spawnMirror({ origin })
  const [linux = ''] = PLATFORMS
  const item = `${origin.hosts[0]}/acme/widget 1.0.0 ${linux}`
  for (let turn = 0; turn < 3; turn += 1) await download(mirror, linux)
  await mirror.restart()
  expect((await usedItems(mirror)).get(item)).toBe(3)
  await download(mirror, linux)
  await expect.poll(async () => (await usedItems(mirror)).get(item), { timeout: 30_000 }).toBe(4)
  await mirror.kill()
  await mirror.start()
  await download(mirror, linux)
  await mirror.restart()
  expect((await usedItems(mirror)).get(item)).toBe(5)
})

test('a state folder that cannot be made is told before anything is served', async () => {
  await using folder = await startMirror({ origin })
  await writeFile(join(folder.folder, 'a-file'), '')
  const stateDir = join(folder.folder, 'a-file', 'state')
  const starting = startMirror({ origin, config: { listen: { port: 0, tls: 'off' }, stateDir } })
  await expect(starting).rejects.toMatchObject({ code: 'CONFIGURATION', message: expect.stringContaining(stateDir) })
})
