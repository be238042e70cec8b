import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { JobEvent } from '../../../src/admin/schema/jobs.ts'
import { AdminClient } from '../../../src/cli/api/client.ts'
import { parseEndpoint } from '../../../src/cli/api/endpoint.ts'
import { followJob } from '../../../src/cli/job/follow.ts'
import { makeTempFolder } from '../../store/temp-folder.ts'
import { AdminStandIn, problem, TOKEN } from '../admin-stand-in.ts'
import { badItem, finishedJob, job } from '../samples.ts'

let folder: Awaited<ReturnType<typeof makeTempFolder>>
let api: AdminStandIn
let client: AdminClient
const lost: string[] = []

beforeEach(async () => {
  folder = await makeTempFolder()
  api = await AdminStandIn.start({ socket: `${folder.path}/admin.sock` })
  client = new AdminClient({
    endpoint: parseEndpoint(api.url),
    token: { token: TOKEN, source: 'the test' },
    trust: { options: {}, trusted: '' },
    version: '0.0.0-test',
  })
  lost.length = 0
})
afterEach(async () => {
  await api[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const running: JobEvent = { event: 'job', data: job() }
const item: JobEvent = { event: 'item', data: badItem() }
const done: JobEvent = { event: 'job', data: finishedJob({ done: 2 }) }

async function follow(options: { signal?: AbortSignal; giveUpMs?: number } = {}): Promise<JobEvent[]> {
  const { signal = new AbortController().signal } = options
  const events: JobEvent[] = []
  const onLost = (reason: string) => lost.push(reason)
  for await (const event of followJob(client, 'job-1', { ...options, signal, onLost })) events.push(event)
  return events
}

describe('following a job', () => {
  test('tells what happens up to its final state, and no further', async () => {
    api.route('GET jobs/job-1/events', async function* () {
      yield running
      yield item
      yield done
      yield running
    })
    expect(await follow()).toEqual([running, item, done])
    expect(lost).toEqual([])
  })

  test('goes on where a stream ends, and says nothing of one break', async () => {
    let streams = 0
    api.route('GET jobs/job-1/events', async function* () {
      streams += 1
      yield running
      if (streams > 1) yield done
    })
    expect(await follow()).toEqual([running, running, done])
    expect([streams, lost]).toEqual([2, []])
  })

  test('goes on through a restart of the mirror, and says once that it is away', async () => {
    let streams = 0
    const stream = async function* () {
      streams += 1
      yield running
      // The connection is cut in the middle.
      if (streams === 1) setImmediate(() => api.breakConnections())
      if (streams === 1) await new Promise(() => undefined)
      yield done
    }
    let refused = 0
    api.route('GET jobs/job-1/events', () => {
      if (streams === 1 && refused < 2) {
        refused += 1
        return { status: 503, body: problem('SHUTTING_DOWN', 'the mirror is stopping') }
      }
      return stream()
    })
    expect(await follow()).toEqual([running, running, done])
    expect(lost).toEqual([expect.stringContaining('the mirror is stopping')])
  })

  test('gives up after an outage that is too long, and says how to go on', async () => {
    let streams = 0
    api.route('GET jobs/job-1/events', () => {
      streams += 1
      if (streams > 1) return { status: 503, body: problem('SHUTTING_DOWN', 'the mirror is stopping') }
      return (async function* () {
        yield running
      })()
    })
    await expect(follow({ giveUpMs: 300 })).rejects.toThrow(
      /the job goes on when the mirror does: terramirror jobs watch job-1/,
    )
    expect(streams).toBeGreaterThan(1)
  })

  test.each([
    ['a job that is not there', 404, 'ITEM_NOT_FOUND'],
    ['a mirror that is stopping when it begins', 503, 'SHUTTING_DOWN'],
  ])('%s ends it at once', async (_name, status, code) => {
    api.route('GET jobs/job-1/events', () => ({ status, body: problem(code, 'no') }))
    await expect(follow()).rejects.toThrow(code)
    expect(api.seen).toHaveLength(1)
  })

  test('a job that is gone when the mirror is back ends it', async () => {
    let streams = 0
    api.route('GET jobs/job-1/events', () => {
      streams += 1
      if (streams > 1) return { status: 404, body: problem('ITEM_NOT_FOUND', 'no such job') }
      return (async function* () {
        yield running
      })()
    })
    await expect(follow()).rejects.toThrow('no such job')
  })

  test('leaves when it is told to, in the midst of a silent stream and of a pause', async () => {
    api.route('GET jobs/job-1/events', async function* () {
      yield running
      await new Promise(() => undefined)
    })
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 100)
    await expect(follow({ signal: controller.signal })).rejects.toThrow('enough')
  })
})
