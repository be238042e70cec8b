import { EventEmitter, once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { JobEvent } from '../../src/admin/schema/jobs.ts'
import { type AdminStage, openAdminStage, TOKEN } from './admin-stage.ts'
import { JOB_ID, job, jobItem, standIns } from './stand-ins.ts'

const PATH = `/admin/api/v1/jobs/${JOB_ID}/events`

/** The events of a job, as a test lets them happen. */
class Script {
  readonly #waiting: JobEvent[] = []
  readonly #happened = new EventEmitter().setMaxListeners(0)
  /** How many events were taken by whom they are for. */
  taken = 0
  readers = 0

  tell(event: JobEvent): void {
    this.#waiting.push(event)
    this.#happened.emit('event')
  }

  async *events(signal: AbortSignal): AsyncGenerator<JobEvent> {
    this.readers += 1
    try {
      for (let next = 0; !signal.aborted; ) {
        const event = this.#waiting[next]
        if (event === undefined) {
          await once(this.#happened, 'event', { signal }).catch(() => undefined)
          continue
        }
        next += 1
        this.taken += 1
        yield event
      }
    } finally {
      this.readers -= 1
    }
  }
}

let script: Script
let stage: AdminStage

beforeEach(async () => {
  script = new Script()
  const jobs = { ...standIns().jobs, events: (_: string, signal: AbortSignal) => script.events(signal) }
  stage = await openAdminStage({ jobs })
})
afterEach(() => stage[Symbol.asyncDispose]())

interface Follower {
  readonly text: () => string
  readonly ended: Promise<'end' | 'torn'>
  readonly contentType: string | undefined
  leave(): void
}

async function follow(): Promise<Follower> {
  const asked = request({ port: stage.port, path: PATH, agent: false, headers: { authorization: `Bearer ${TOKEN}` } })
  asked.on('error', () => undefined)
  asked.end()
  const [answer] = await once(asked, 'response')
  let text = ''
  answer.on('data', (chunk: Buffer) => {
    text += chunk
  })
  const ended = new Promise<'end' | 'torn'>((resolve) => {
    answer.on('end', () => resolve('end'))
    answer.on('error', () => resolve('torn'))
  })
  return { text: () => text, ended, contentType: answer.headers['content-type'], leave: () => asked.destroy() }
}

const item: JobEvent = { event: 'item', data: jobItem }
const end: JobEvent = { event: 'job', data: { ...job, state: 'done' } }

test('each event comes when it happens, as server-sent events; the stream ends with the final one', async () => {
  script.tell({ event: 'job', data: job })
  const follower = await follow()
  expect(follower.contentType).toBe('text/event-stream')
  const first = `event: job\ndata: ${JSON.stringify(job)}\n\n`
  await expect.poll(follower.text).toBe(first)
  script.tell(item)
  const second = `event: item\ndata: ${JSON.stringify(jobItem)}\n\n`
  await expect.poll(follower.text).toBe(first + second)
  script.tell(end)
  expect(await follower.ended).toBe('end')
  expect(follower.text()).toBe(`${first}${second}event: job\ndata: ${JSON.stringify(end.data)}\n\n`)
  await expect.poll(() => script.readers).toBe(0)
})

test('line feeds of what an origin said cannot forge an event', async () => {
  script.tell({ event: 'item', data: { ...jobItem, reason: 'a\n\nevent: job\ndata: {}\r\n\r\n' } })
  script.tell(end)
  const follower = await follow()
  await follower.ended
  expect(follower.text().match(/^event:/gm)).toEqual(['event:', 'event:'])
  expect(follower.text()).not.toContain('\r')
})

test('a client that leaves ends the reading of events', async () => {
  script.tell(item)
  const follower = await follow()
  await expect.poll(follower.text).not.toBe('')
  expect(script.readers).toBe(1)
  follower.leave()
  await expect.poll(() => script.readers).toBe(0)
})

test('a stop of the mirror ends the stream in good order', async () => {
  script.tell(item)
  const follower = await follow()
  await expect.poll(follower.text).not.toBe('')
  stage.stopping.abort()
  expect(await follower.ended).toBe('end')
  await expect.poll(() => script.readers).toBe(0)
})

test('HEAD begins no stream', async () => {
  const asked = request({
    ...{ port: stage.port, path: PATH, method: 'HEAD', agent: false },
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  asked.end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  await once(answer, 'end')
  expect(answer.statusCode).toBe(200)
  await expect.poll(() => script.readers).toBe(0)
})

describe('readers that are slow', () => {
  /** Connected, asked, and never reading. */
  async function stall(): Promise<Socket> {
    const socket = connect(stage.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.pause()
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
    return socket
  }

  test('take no more events than their connection holds, and hold nobody up', async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, stall))
    await expect.poll(() => script.readers).toBe(20)
    const large: JobEvent = { event: 'item', data: { ...jobItem, reason: 'x'.repeat(100_000) } }
    for (let each = 0; each < 300; each++) script.tell(large)
    await expect
      .poll(
        async () => {
          const before = script.taken
          await delay(300)
          return script.taken - before
        },
        { timeout: 30_000 },
      )
      .toBe(0)
    // Buffers of the system differ; without a bound it would be 300 for each.
    expect(script.taken).toBeLessThan(20 * 150)
    script.tell(end)
    const quick = await follow()
    expect(await quick.ended).toBe('end')
    expect(quick.text().length).toBeGreaterThan(30_000_000)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => script.readers).toBe(0)
  })
})
