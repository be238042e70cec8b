import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PurgeResult } from '../../src/admin/schema/changes.ts'
import { Job, JobWithItems } from '../../src/admin/schema/jobs.ts'
import { PackagePage } from '../../src/admin/schema/stock.ts'
import { WarmStarted } from '../../src/admin/schema/warm.ts'
import { AdminStandIn } from './admin-stand-in.ts'
import { runOnTerminal, terminalAvailable } from './pseudo-terminal.ts'
import { badItem, finishedJob, heldPackage, job } from './samples.ts'

let api: AdminStandIn
let cancelled: PromiseWithResolvers<void>

beforeEach(async () => {
  api = await AdminStandIn.start()
  cancelled = Promise.withResolvers()
})
afterEach(() => api[Symbol.asyncDispose]())

/** A job that goes on, a megabyte in a tenth of a second, until it is cancelled or at its end. */
function answerLongJob({ steps = 1000 }: { steps?: number } = {}): void {
  api.answer('POST warm', WarmStarted, job(), 202)
  api.route('GET jobs/job-1/events', async function* () {
    for (let step = 1; step <= steps; step++) {
      const progress = { done: step, total: steps, bytes: 1_000_000 * step, totalBytes: 1_000_000 * steps }
      yield { event: 'job' as const, data: job({ progress }) }
      if (step === 3) yield { event: 'item' as const, data: badItem() }
      if ((await Promise.race([cancelled.promise.then(() => 'cancelled'), sleep(100)])) === 'cancelled') {
        yield { event: 'job' as const, data: finishedJob({ done: 3 }, { state: 'cancelled' }) }
        return
      }
    }
    yield { event: 'job' as const, data: finishedJob({ done: steps - 1, refused: 1 }) }
  })
  api.answer('GET jobs/job-1', JobWithItems, { ...finishedJob({ refused: 1 }), items: [badItem()], next: null })
  api.route('DELETE jobs/job-1', () => {
    cancelled.resolve()
    return { body: Job.parse(job()) }
  })
}

const methods = () => api.seen.map(({ method, path }) => `${method} ${path}`)

describe.skipIf(!terminalAvailable())('on a terminal', () => {
  test('a job has bars for items and bytes, with rate and time left; failures stand above them', async () => {
    answerLongJob({ steps: 20 })
    await using run = runOnTerminal(['warm', 'hashicorp/aws', ...api.options])
    await run.waitFor(/items \[=+-+\] \d+ of 20/)
    await run.waitFor(/bytes \[=+-+\] [\d.]+ MB of 20 MB, [\d.]+ MB\/s, \d+ s left/)
    expect(await run.exitCode).toBe(1)
    const { screen } = run
    expect(screen).toMatch(/widget 1\.0\.0 linux_amd64: refused: no listed key.*\r\n.*items \[/)
    expect(screen).toMatch(/warm done in 3 min 20 s: 19 fetched, 1 refused; 2 MB\r\n/)
    // The bars are gone before the summary, and the terminal wraps lines again.
    expect(screen.lastIndexOf('\u001b[?7h')).toBeGreaterThan(screen.lastIndexOf('\u001b[?7l'))
    expect(screen.lastIndexOf('items [')).toBeLessThan(screen.indexOf('warm done'))
  })

  test('Ctrl-C cancels the job and awaits its end', async () => {
    answerLongJob()
    await using run = runOnTerminal(['warm', 'hashicorp/aws', ...api.options])
    await run.waitFor(/items \[/)
    run.type('\u0003')
    expect(await run.exitCode).toBe(130)
    expect(run.screen).toMatch(/cancelling job job-1; once more Ctrl-C leaves it to itself/)
    expect(run.screen).toMatch(/warm cancelled/)
    expect(methods()).toContain('DELETE jobs/job-1')
  })

  test('a second Ctrl-C leaves a job that does not end', async () => {
    answerLongJob()
    // It is cancelled, and takes its time.
    api.answer('DELETE jobs/job-1', Job, job())
    await using run = runOnTerminal(['warm', 'hashicorp/aws', ...api.options])
    await run.waitFor(/items \[/)
    run.type('\u0003')
    await run.waitFor(/cancelling job/)
    // Within half a second it counts as the same key stroke.
    await sleep(600)
    run.type('\u0003')
    expect(await run.exitCode).toBe(130)
    expect(run.screen).toMatch(/left; job job-1 goes on: terramirror jobs watch job-1/)
    expect(run.screen.lastIndexOf('\u001b[?7h')).toBeGreaterThan(run.screen.lastIndexOf('\u001b[?7l'))
  })

  test('Ctrl-C leaves a job that is only watched', async () => {
    answerLongJob()
    await using run = runOnTerminal(['jobs', 'watch', 'job-1', ...api.options])
    await run.waitFor(/items \[/)
    run.type('\u0003')
    expect(await run.exitCode).toBe(130)
    expect(methods()).not.toContain('DELETE jobs/job-1')
  })

  const purge = ['purge', 'hashicorp/aws', '5.100.0', 'linux_amd64']
  const route = 'DELETE packages/registry.terraform.io/hashicorp/aws/5.100.0/linux_amd64'

  test.each([
    ['y\r', 0, true],
    ['yes\r', 0, true],
    ['n\r', 1, false],
    ['\r', 1, false],
    ['\u0004', 1, false],
    ['\u0003', 1, false],
  ])('purge asks, and %j is answered with exit code %d', async (keys, code, isRemoved) => {
    api.answer('GET packages', PackagePage, { items: [heldPackage()], next: null })
    api.answer(route, PurgeResult, { removed: ['x'], pinned: [], bytes: 1 })
    await using run = runOnTerminal([...purge, ...api.options])
    await run.waitFor(
      /Remove 1 item of registry\.terraform\.io\/hashicorp\/aws 5\.100\.0 linux_amd64, 123 MB\? \[y\/N\] /,
    )
    run.type(keys)
    expect(await run.exitCode).toBe(code)
    expect(methods().includes(route)).toBe(isRemoved)
  })
})
