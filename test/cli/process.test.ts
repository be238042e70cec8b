import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Job, JobWithItems } from '../../src/admin/schema/jobs.ts'
import { PackagePage } from '../../src/admin/schema/stock.ts'
import { WarmStarted } from '../../src/admin/schema/warm.ts'
import { PROCESS_ENV } from '../e2e/mirror-fixture.ts'
import { PROGRAM } from '../programs.ts'
import { AdminStandIn } from './admin-stand-in.ts'
import { finishedJob, heldPackage, job } from './samples.ts'

const [NODE, MAIN = ''] = PROGRAM
const SOURCE = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

let api: AdminStandIn

beforeAll(async () => {
  api = await AdminStandIn.start()
  // A list without an end.
  api.route('GET packages', ({ query }) => ({
    body: PackagePage.parse({
      items: Array.from({ length: 500 }, () => heldPackage()),
      next: String(Number(query.cursor ?? 0) + 1),
    }),
  }))
})
afterAll(() => api[Symbol.asyncDispose]())

/** Runs a shell line in which `$program` is the program, `$options` are those for the stand-in. */
async function shell(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...PROCESS_ENV, program: PROGRAM.join(' '), options: api.options.join(' ') }
  const child = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: Number(code), stdout, stderr }
}

describe('standard output', () => {
  test.each(['', '--json'])('may be left early: list --all %s | head', async (json) => {
    const file = join(api.folder, 'code')
    const { stdout, stderr } = await shell(`($program list --all ${json} $options; echo $? > ${file}) | head -n 2`)
    expect(stdout.split('\n')).toHaveLength(3)
    expect([stderr, await readFile(file, 'utf8')]).toEqual(['', '0\n'])
  })

  test('that cannot be written is a failure', async () => {
    const { code, stderr } = await shell('$program list $options > /dev/full')
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot write the output (ENOSPC)')])
  })
})

describe('the exit code', () => {
  test.each([
    ['list $options > /dev/null', 0],
    ['list --server https://localhost:1/ --token x', 1],
    ['list --no-such-option', 2],
    ['list --server ftp://x/', 2],
    ['list --limit 0', 2],
    ['warm', 2],
    ['jobs show', 2],
    ['purge hashicorp/aws $options', 2],
    ['lst', 2],
  ])('of %s is %d', async (line, expected) => {
    const { code, stderr } = await shell(`$program ${line}`)
    expect(code, stderr).toBe(expected)
    expect(stderr).not.toMatch(/^ +at /m)
  })
})

test('SIGTERM, as a CI system sends it, cancels the job and says so in plain lines', async () => {
  let isCancelled = false
  api.answer('POST warm', WarmStarted, job(), 202)
  api.route('GET jobs/job-1/events', async function* () {
    while (!isCancelled) {
      yield { event: 'job' as const, data: job() }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    yield { event: 'job' as const, data: finishedJob({ done: 1 }, { state: 'cancelled' }) }
  })
  api.answer('GET jobs/job-1', JobWithItems, { ...finishedJob({}), items: [], next: null })
  api.route('DELETE jobs/job-1', () => {
    isCancelled = true
    return { body: Job.parse(job()) }
  })
  const child = spawn(NODE, [MAIN, 'warm', 'hashicorp/aws', ...api.options], { env: PROCESS_ENV })
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  await expect.poll(() => api.seen.some(({ path }) => path === 'jobs/job-1/events'), { timeout: 30_000 }).toBe(true)
  child.kill('SIGTERM')
  const [stdout, stderr, [code]] = await output
  expect([code, stdout]).toEqual([130, expect.stringContaining('warm cancelled')])
  expect(stderr).toContain('terramirror: cancelling job job-1')
  expect(stderr).not.toContain('\u001b')
})

test('no command loads the server, and help loads no command', async () => {
  const watch =
    'import { registerHooks } from "node:module"; registerHooks({ load: (url, context, next) => { console.error(url); return next(url, context) } })'
  const loads = async (...args: string[]) => {
    const hook = `data:text/javascript,${encodeURIComponent(watch)}`
    const run = promisify(execFile)(NODE, ['--import', hook, SOURCE, ...args], { env: PROCESS_ENV })
    const { stderr } = await run.catch((error: { stderr: string }) => error)
    return stderr.split('\n').flatMap((url) => /\/src\/(.*)$/.exec(url)?.[1] ?? [])
  }
  expect(await loads('--help')).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^(admin|cli\/(api|job|list))/)]),
  )
  const list = await loads('list', ...api.options)
  expect(list).toEqual(expect.arrayContaining(['cli/list.ts', 'cli/api/client.ts']))
  expect(list.filter((file) => /^(server|mirror|http|store|upstream|tls|log)|cli\/warm/.test(file))).toEqual([])
})
