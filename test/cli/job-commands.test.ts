import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PinSet } from '../../src/admin/schema/changes.ts'
import { Job, type JobEvent, JobPage, JobWithItems } from '../../src/admin/schema/jobs.ts'
import { WarmPlan, WarmStarted } from '../../src/admin/schema/warm.ts'
import { AdminStandIn, problem } from './admin-stand-in.ts'
import { runCommand } from './run-command.ts'
import { badItem, finishedJob, job, TIME } from './samples.ts'

let api: AdminStandIn

beforeEach(async () => {
  api = await AdminStandIn.start()
})
afterEach(() => api[Symbol.asyncDispose]())

const run = (...args: string[]) => runCommand([...args, ...api.options])
const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout)

/** Answers for a job that ends so; each item that is not well has its event. */
function answerJob(end: Job, bad: ReturnType<typeof badItem>[] = []): void {
  const route = end.kind === 'warm' ? 'POST warm' : 'POST verify'
  api.answer(route, WarmStarted, job({ kind: end.kind, state: 'queued' }), 202)
  api.route('GET jobs/job-1/events', async function* () {
    const events: JobEvent[] = [
      { event: 'job', data: job({ kind: end.kind }) },
      ...bad.map((data) => ({ event: 'item' as const, data })),
      { event: 'job', data: end },
    ]
    yield* events
  })
  api.answer('GET jobs/job-1', JobWithItems, { ...end, items: bad, next: null })
}

describe('terramirror warm', () => {
  test('sends what is to be warmed, shows what is not well at once, and sums up', async () => {
    answerJob(finishedJob({ done: 1, held: 1, refused: 1 }), [badItem()])
    const { code, stdout, stderr } = await run('warm', 'hashicorp/aws@~> 5.0', '--platform', 'linux_amd64')
    expect(code).toBe(1)
    const reason =
      'registry.terraform.io/acme/widget 1.0.0 linux_amd64: refused: no listed key made the signature (SIGNATURE_INVALID)'
    expect(stderr).toBe(`terramirror: ${reason}\n`)
    expect(stdout).toBe(`warm done in 3 min 20 s: 1 fetched, 1 held already, 1 refused; 2 MB\n  ${reason}\n`)
    expect(api.seen[0]?.body).toEqual({
      providers: [{ source: 'hashicorp/aws', version: '~> 5.0' }],
      modules: [],
      lockFiles: [],
      configuration: {},
      platforms: ['linux_amd64'],
      followModules: true,
      dryRun: false,
    })
    expect(api.seen.at(-1)?.query).toMatchObject({ outcome: 'failed' })
  })

  test.each([
    [finishedJob({ done: 2, held: 3 }), 0],
    [finishedJob({}), 0],
    [finishedJob({ done: 2, failed: 1 }), 1],
    [finishedJob({ done: 2, notPublished: 1 }), 1],
    [finishedJob({ done: 2 }, { state: 'failed', reason: 'the disk is full' }), 1],
    [finishedJob({ done: 2 }, { state: 'cancelled' }), 1],
  ])('ends with the code of what became of it (%#)', async (end, code) => {
    answerJob(end)
    expect((await run('warm', 'hashicorp/aws', '-q')).code).toBe(code)
  })

  test('--json prints the job with what is not well', async () => {
    answerJob(finishedJob({ done: 1, refused: 1 }), [badItem()])
    const result = await run('warm', 'hashicorp/aws', '--json', '--quiet')
    expect([result.code, result.stderr]).toEqual([1, ''])
    const document = json(result)
    expect(JobWithItems.parse(document)).toEqual(document)
    expect(document).toMatchObject({ id: 'job-1', state: 'done', items: [badItem()], next: null })
  })

  test('--dry-run tells what would be fetched, with a sum', async () => {
    const plan = {
      items: [
        {
          item: 'registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64',
          outcome: 'fetch' as const,
          size: 120_000_000,
        },
        { item: 'registry.terraform.io/hashicorp/null 3.2.4 linux_amd64', outcome: 'held' as const, size: 5_000_000 },
        { item: 'registry.terraform.io/a/b/c 1.0.0', outcome: 'fetch' as const },
      ],
      bytes: 120_000_000,
      unknownSizes: 1,
    }
    api.answer('POST warm', WarmPlan, plan)
    const { code, stdout } = await run('warm', 'hashicorp/aws', '--dry-run')
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      'OUTCOME    SIZE  ITEM                                                     REASON',
      'fetch    120 MB  registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64',
      'held       5 MB  registry.terraform.io/hashicorp/null 3.2.4 linux_amd64',
      'fetch         ?  registry.terraform.io/a/b/c 1.0.0',
      'to fetch: 2 (120 MB and 1 of unknown size), held already: 1',
      '',
    ])
    expect(json(await run('warm', 'hashicorp/aws', '--dry-run', '--json'))).toEqual(plan)
    api.answer('POST warm', WarmPlan, { items: plan.items.slice(2), bytes: 0, unknownSizes: 1 })
    expect((await run('warm', 'hashicorp/aws', '--dry-run')).stdout).toMatch(
      /^to fetch: 1 \(1 of unknown size\), held already: 0$/m,
    )
    const refused = { item: 'x', outcome: 'notPublished' as const, reason: 'no such version' }
    api.answer('POST warm', WarmPlan, { ...plan, items: [refused] })
    expect((await run('warm', 'hashicorp/aws', '--dry-run')).code).toBe(1)
  })

  test('--detach prints the id alone', async () => {
    answerJob(finishedJob({ done: 1 }))
    const { code, stdout, stderr } = await run('warm', 'hashicorp/aws', '--detach')
    expect([code, stdout]).toEqual([0, 'job-1\n'])
    expect(stderr).toContain('terramirror jobs watch job-1')
    expect(api.seen).toHaveLength(1)
  })

  test('--pin makes a set of what came, if the job came to its end', async () => {
    answerJob(finishedJob({ done: 1 }))
    api.answer('PUT pins/prod', PinSet, { name: 'prod', updatedAt: TIME, items: ['x'], held: 1, bytes: 5_000_000 })
    const { code, stderr } = await run('warm', 'hashicorp/aws', '--pin', 'prod', '-q')
    expect([code, stderr]).toEqual([0, 'terramirror: pinned as prod: 1 held, 5 MB\n'])
    expect(api.seen.at(-1)).toMatchObject({ method: 'PUT', body: { jobs: ['job-1'] } })
    answerJob(finishedJob({ done: 1 }, { state: 'cancelled' }))
    await run('warm', 'hashicorp/aws', '--pin', 'prod', '-q')
    expect(api.seen.at(-1)?.method).toBe('GET')
  })

  test('a refusal of the API because of what was given is wrong use', async () => {
    api.route('POST warm', () => ({ status: 400, body: problem('CONSTRAINT_INVALID', '"5.x" is no constraint') }))
    const { code, stderr } = await run('warm', 'hashicorp/aws@5.x')
    expect([code, stderr]).toEqual([2, expect.stringContaining('"5.x" is no constraint')])
  })

  test.each([
    ['--dry-run', '--detach'],
    ['--dry-run', '--pin', 'x'],
    ['--detach', '--pin', 'x'],
    ['--platform', 'linux'],
    ['--no-such-option'],
  ])('%s %s is wrong use, and sends nothing', async (...args) => {
    expect((await run('warm', 'hashicorp/aws', ...args.filter(Boolean))).code).toBe(2)
    expect(api.seen).toEqual([])
  })
})

describe('terramirror verify', () => {
  test('sends what is to be looked at, and how fast', async () => {
    answerJob(finishedJob({ done: 2 }, { kind: 'verify' }))
    const { code, stdout } = await run('verify', 'registry.terraform.io/hashicorp/', '--no-repair', '--rate', '20MB')
    expect([code, stdout]).toEqual([0, 'verify done in 3 min 20 s: 2 well; 2 MB\n'])
    expect(api.seen[0]?.body).toEqual({ prefix: 'registry.terraform.io/hashicorp/', repair: false, rate: 20_000_000 })
    await run('verify', '--detach')
    expect(api.seen.at(-1)?.body).toEqual({ prefix: '', repair: true })
  })

  test('--rate without a unit is wrong use', async () => {
    expect((await run('verify', '--rate', '20')).code).toBe(2)
  })
})

describe('terramirror jobs', () => {
  test('lists jobs', async () => {
    api.answer('GET jobs', JobPage, { items: [finishedJob({ done: 2, failed: 1 })], next: null })
    for (const args of [['jobs'], ['jobs', 'list']]) {
      expect((await run(...args)).stdout).toMatch(/^JOB .*\njob-1 +warm +done +\d+ \w+ ago +3\/3 +2 MB +1\n$/)
    }
    expect(json(await run('jobs', '--json')).items).toHaveLength(1)
  })

  test('shows one with its items, all of them where that is wanted', async () => {
    api.route('GET jobs/job-1', ({ query }) => ({
      body: JobWithItems.parse({
        ...finishedJob({ done: 1, refused: 1 }),
        items: [query.cursor === undefined ? badItem() : badItem({ item: 'second' })],
        next: query.cursor === undefined ? 'c1' : null,
      }),
    }))
    const { stdout } = await run('jobs', 'show', 'job-1', '--outcome', 'failed')
    expect(stdout).toMatch(/^job +job-1, warm, done$/m)
    expect(stdout).toMatch(/^refused +0 B +registry\.terraform\.io\/acme\/widget 1\.0\.0 linux_amd64 +no listed key/m)
    expect(api.seen.at(-1)?.query).toMatchObject({ outcome: 'failed' })
    expect((await run('jobs', 'show', 'job-1', '--all')).stdout).toContain('second')
    expect(json(await run('jobs', 'show', 'job-1', '--json'))).toMatchObject({ id: 'job-1', next: 'c1' })
  })

  test('watches one, for people and as a stream of JSON lines', async () => {
    answerJob(finishedJob({ done: 1, refused: 1 }), [badItem()])
    const people = await run('jobs', 'watch', 'job-1')
    expect([people.code, people.stdout]).toEqual([1, expect.stringContaining('warm done in 3 min 20 s')])
    const lines = await run('jobs', 'watch', 'job-1', '--json')
    expect(lines.code).toBe(1)
    const events = lines.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map(({ event }) => event)).toEqual(['job', 'item', 'job'])
  })

  test('cancels one', async () => {
    api.answer('DELETE jobs/job-1', Job, finishedJob({ done: 1 }, { state: 'cancelled' }))
    expect((await run('jobs', 'cancel', 'job-1')).stdout).toMatch(/^job +job-1, warm, cancelled$/m)
  })

  test('one that is not there is told', async () => {
    api.route('GET jobs/no', () => ({ status: 404, body: problem('ITEM_NOT_FOUND', 'there is no job no') }))
    const { code, stderr } = await run('jobs', 'show', 'no')
    expect([code, stderr]).toEqual([1, expect.stringContaining('there is no job no (ITEM_NOT_FOUND')])
  })
})
