import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { silentLog } from '../../../src/log.ts'
import type { JobItem } from '../../../src/mirror/jobs/job.ts'
import { PROCESS_ENV, prepareFolder } from '../../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../../origin/origin.ts'
import { request } from './warm-fixture.ts'
import { openWarmHost } from './warm-host.ts'

/*
 * Jobs that warm, over real folders and a real origin: killed, cancelled, and taken up again.
 */

const CHILD = fileURLToPath(new URL('warm-child.ts', import.meta.url))
const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64']
const VERSIONS = Array.from({ length: 125 }, (_, n) => `1.0.${n}`)

let origin: TestOrigin
let folder: string

beforeAll(async () => {
  origin = await startOrigin()
  for (const version of VERSIONS) await origin.publish({ provider: 'acme/widget', version, platforms: PLATFORMS })
}, 120_000)
afterAll(() => origin[Symbol.asyncDispose]())
beforeEach(async () => {
  origin.reset()
  folder = await prepareFolder({ origin })
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const everything = request({
  providers: VERSIONS.map((version) => ({ source: 'registry.example.test/acme/widget', version })),
  platforms: PLATFORMS,
})

/** Runs the child until so many items are decided, and kills it then; until it ends without `killAt`. */
async function runChild(args: readonly string[], killAt = Number.POSITIVE_INFINITY): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, folder, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: PROCESS_ENV,
  })
  const exited = once(child, 'exit')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    const [, decided] = /^decided (\d+)$/.exec(line) ?? []
    if (Number(decided) >= killAt) child.kill('SIGKILL')
  }
  await exited
  return lines
}

/** The items that the journal of the one job holds. */
async function journalled(): Promise<JobItem[]> {
  const journals = join(folder, 'data', 'state', 'journals')
  const [name = ''] = (await readdir(journals)).filter((each) => each.startsWith('jobs-'))
  const lines = (await readFile(join(journals, name), 'utf8')).split('\n').filter((line) => line.includes('"item"'))
  return lines.map((line) => JSON.parse(line).item)
}

/** How often the origin was asked for the archive of an item. */
function fetches({ item }: JobItem): number {
  return origin.count(`archive ${item.replace('registry.example.test/', '')}`)
}

test('a job of 500 items survives kill -9, twice: each is decided once, and what was decided is not fetched again', async () => {
  const decided: { item: JobItem; fetched: number }[][] = []
  await runChild([JSON.stringify(everything)], 60)
  decided.push((await journalled()).map((item) => ({ item, fetched: fetches(item) })))
  await runChild([], 250)
  decided.push((await journalled()).map((item) => ({ item, fetched: fetches(item) })))
  const last = await runChild([])
  expect(last.at(-1)).toBe('ended done')

  const items = await journalled()
  expect(items).toHaveLength(500)
  expect(new Set(items.map(({ item }) => item)).size).toBe(500)
  expect(items.filter(({ outcome }) => outcome !== 'done' && outcome !== 'held')).toEqual([])
  // Killed in the midst, both times.
  expect(decided.map((each) => each.length > 0 && each.length < 500)).toEqual([true, true])
  for (const before of decided) {
    for (const { item, fetched } of before) {
      expect(items).toContainEqual(item)
      expect([item.item, fetches(item)]).toEqual([item.item, fetched])
    }
  }
  // At most the few that were under way were begun twice.
  expect(origin.count('archive')).toBeLessThanOrEqual(500 + 2 * 4)
}, 240_000)

describe('a job that is cancelled', () => {
  /** Everything that is not in its place yet. */
  const temporary = async (): Promise<string[]> => [
    ...(await readdir(join(folder, 'data', 'tmp'))),
    ...(await readdir(join(folder, 'data', 'state', 'tmp'))),
  ]

  test.each([
    ['archives that trickle', { kind: 'archive' }, { trickle: 100 }],
    ['archives that hang', { kind: 'archive' }, { hang: true }],
    ['checksums that hang', { kind: 'sums' }, { hang: true }],
    ['documents that hang', { kind: 'download' }, { hang: true }],
    ['a list that hangs', { kind: 'versions' }, { hang: true }],
    ['a discovery that hangs', { kind: 'discovery' }, { hang: true }],
  ] as const)('leaves no request, no temporary file and no further item: %s', async (_, matcher, behaviour) => {
    await using host = await openWarmHost(folder, silentLog())
    using fault = origin.fault(matcher, behaviour)
    const { id } = await host.jobs.start(host.warm.kind, everything)
    await origin.until(() => fault.struck > 0)
    const job = await host.jobs.cancel(id)
    expect(job.state).toBe('cancelled')
    await origin.until(() => origin.inFlight === 0, 2_000)
    expect(await temporary()).toEqual([])
    const asked = origin.requests.length
    await setTimeout(200)
    expect(origin.requests.length).toBe(asked)
  })

  test('stays so over a restart, and a new one brings what it left', async () => {
    const few = { ...everything, providers: everything.providers.slice(0, 2) }
    {
      await using host = await openWarmHost(folder, silentLog())
      using fault = origin.fault({ kind: 'archive' }, { hang: true })
      const { id } = await host.jobs.start(host.warm.kind, few)
      await origin.until(() => fault.struck > 0)
      await host.jobs.cancel(id)
    }
    await using host = await openWarmHost(folder, silentLog())
    expect(host.jobs.list({ limit: 5 }).items).toMatchObject([{ state: 'cancelled' }])
    const { id } = await host.jobs.start(host.warm.kind, few)
    for await (const _ of host.jobs.events(id, AbortSignal.timeout(20_000)));
    expect(host.jobs.get(id)).toMatchObject({ state: 'done', outcomes: { done: 8 } })
  })
})
