import { fileURLToPath } from 'node:url'
import type { OriginFacts, OriginOrder, PublishedFacts, SeenRequest } from './origin-process.ts'
import { OwnedProcess, unlessAborted } from './owned-process.ts'

/** The origin registry in its own process. Everything here is what that process says. */
export class Origin implements AsyncDisposable {
  readonly facts: OriginFacts
  readonly #process: OwnedProcess
  readonly #signal: AbortSignal
  #orders = 0
  #told = 0

  private constructor(process: OwnedProcess, facts: OriginFacts, signal: AbortSignal) {
    this.#process = process
    this.facts = facts
    this.#signal = signal
  }

  /** Starts it. @throws Error if it cannot start; the signal's reason if that fires */
  static async start(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Origin> {
    await using stack = new AsyncDisposableStack()
    const program = fileURLToPath(new URL('origin-process.ts', import.meta.url))
    const child = stack.use(
      new OwnedProcess(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] }),
    )
    let trouble = ''
    child.readLines(child.child.stderr, (line) => {
      trouble += `\n${line}`
    })
    const ready = new Promise<OriginFacts>((resolve) => {
      child.child.once('message', (facts) => resolve(facts as OriginFacts))
    })
    const died = child.ended.then((how) => {
      throw new Error(`the origin ended with ${how} before it served${trouble}`)
    })
    const facts = await unlessAborted(Promise.race([ready, died]), signal)
    died.catch(() => undefined)
    stack.move()
    return new Origin(child, facts, signal)
  }

  get pid(): number {
    return this.#process.pid
  }

  /** The requests that came since the last time this was asked, oldest first. */
  async newRequests(): Promise<SeenRequest[]> {
    const requests = (await this.#send('requests')) as SeenRequest[]
    const fresh = requests.slice(this.#told)
    this.#told = requests.length
    return fresh
  }

  /** Publishes a new version, signed as ever, and from then on changes one byte of its archives on their way. */
  async tamper(): Promise<PublishedFacts> {
    return (await this.#send('tamper')) as PublishedFacts
  }

  /** Ends the process; tells how it ended. */
  stop(): Promise<number | string> {
    return this.#process.end()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process[Symbol.asyncDispose]()
  }

  async #send(order: OriginOrder): Promise<unknown> {
    const { child, ended } = this.#process
    this.#orders += 1
    const id = this.#orders
    const answer = Promise.withResolvers<unknown>()
    const onMessage = (message: unknown): void => {
      const { id: of, result } = message as { id: number; result: unknown }
      if (of === id) answer.resolve(result)
    }
    child.on('message', onMessage)
    child.send({ id, order })
    const died = ended.then((how) => {
      throw new Error(`the origin ended with ${how}`)
    })
    died.catch(() => undefined)
    try {
      return await unlessAborted(Promise.race([answer.promise, died]), this.#signal)
    } finally {
      child.off('message', onMessage)
    }
  }
}
