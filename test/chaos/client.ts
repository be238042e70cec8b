import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request } from 'node:https'
import type { Span } from './timeline.ts'

/** How a client asks, and how it behaves. */
export interface Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** Breaks the connection when it has received so many bytes of the body; 0: as soon as the head is in. */
  readonly leaveAfterBytes?: number
  /** Breaks the connection after this time, whatever has come. */
  readonly leaveAfterMs?: number
  /** Takes nothing for this long before it reads the body. */
  readonly pauseMs?: number
}

/** What came back. */
export interface Answer {
  readonly span: Span
  /** 0 if no answer came. */
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body ended as HTTP says. */
  readonly whole: boolean
  /** The client broke the connection itself. */
  readonly left: boolean
  /** What broke the connection, if anything did. */
  readonly trouble: string | undefined
}

/** A client of one life of a mirror, which keeps its connections. The caller closes it. */
export class Client {
  readonly #agent: HttpsAgent
  readonly #port: number
  readonly #caPem: string

  constructor(url: string, caPem: string) {
    this.#port = Number(new URL(url).port)
    this.#caPem = caPem
    this.#agent = new HttpsAgent({ keepAlive: true, maxSockets: 64 })
  }

  /** Sends a path exactly as given. Never rejects: what went wrong is part of the answer. */
  ask(path: string, ask: Ask = {}): Promise<Answer> {
    const from = performance.now()
    const chunks: Buffer[] = []
    let response: IncomingMessage | undefined
    let left = false
    return new Promise((resolve) => {
      const finish = (trouble?: string): void => {
        resolve({
          span: { from, to: performance.now() },
          status: response?.statusCode ?? 0,
          headers: response?.headers ?? {},
          body: Buffer.concat(chunks),
          whole: response?.complete === true,
          left,
          trouble,
        })
      }
      const leave = (): void => {
        left = true
        sent.destroy()
        finish('the client left')
      }
      const sent = request({
        host: '127.0.0.1',
        servername: 'localhost',
        port: this.#port,
        path,
        method: ask.method ?? 'GET',
        ca: this.#caPem,
        agent: this.#agent,
        headers: { host: `localhost:${this.#port}`, ...ask.headers },
      })
      const timer = ask.leaveAfterMs === undefined ? undefined : setTimeout(leave, ask.leaveAfterMs)
      sent.once('close', () => clearTimeout(timer))
      sent.on('error', (error) => finish(String(error)))
      sent.once('response', (incoming) => {
        response = incoming
        incoming.on('error', (error) => finish(String(error)))
        incoming.once('close', () => finish(incoming.complete ? undefined : 'the body broke off'))
        const read = (): void => {
          let received = 0
          incoming.on('data', (chunk: Buffer) => {
            chunks.push(chunk)
            received += chunk.length
            if (ask.leaveAfterBytes !== undefined && received >= ask.leaveAfterBytes) leave()
          })
        }
        if (ask.leaveAfterBytes === 0) leave()
        else if (ask.pauseMs === undefined) read()
        else setTimeout(read, ask.pauseMs)
      })
      sent.end()
    })
  }

  /** Connections that are open, used or idle. */
  get connections(): number {
    const count = (sockets: NodeJS.ReadOnlyDict<unknown[]>): number =>
      Object.values(sockets).reduce((sum, each) => sum + (each?.length ?? 0), 0)
    return count(this.#agent.sockets) + count(this.#agent.freeSockets)
  }

  close(): void {
    this.#agent.destroy()
  }
}
