import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, JobEvent } from '../../admin/schema/jobs.ts'
import type { AdminClient } from '../api/client.ts'
import type { ServerSentEvent } from '../api/event-stream.ts'
import { Refusal, Unreachable } from '../api/failure.ts'
import { CommandError } from '../command-error.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000
/** A mirror that restarts is back within this time. */
const GIVE_UP_MS = 300_000

/** How a job is followed. */
export interface FollowOptions {
  /** Ends it with its reason. */
  readonly signal: AbortSignal
  /** Called once for each outage, with its reason. */
  readonly onLost: (reason: string) => void
  /** How long an outage may last, in milliseconds; default 5 minutes. */
  readonly giveUpMs?: number
}

/** True if nothing will happen to the job any more. */
export function isFinished({ state }: Job): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}

/**
 * What happens to a job until it is finished; the last event is the job in its final state. When the stream breaks or
 * falls silent it is asked for again: the job goes on without us, and it survives a restart of the mirror.
 * @throws CommandError if the first connection fails, the API refuses, or an outage lasts too long
 */
export async function* followJob(
  client: AdminClient,
  id: string,
  { signal, onLost, giveUpMs = GIVE_UP_MS }: FollowOptions,
): AsyncGenerator<JobEvent, void, undefined> {
  let lastEventAt: number | undefined
  let pause = 0
  for (;;) {
    let reason = `${client.name} tells nothing of job ${id}`
    try {
      for await (const message of client.events(['jobs', id, 'events'], signal)) {
        const event = parseEvent(message)
        if (event === undefined) continue
        lastEventAt = performance.now()
        pause = 0
        yield event
        if (event.event === 'job' && isFinished(event.data)) return
      }
    } catch (error) {
      signal.throwIfAborted()
      if (lastEventAt === undefined || !mayPass(error)) throw error
      reason = error.message
    }
    if (lastEventAt === undefined) throw new Unreachable(reason)
    if (performance.now() - lastEventAt > giveUpMs) {
      throw new CommandError(`${reason}; the job goes on when the mirror does: terramirror jobs watch ${id}`)
    }
    // The first break alone is no outage: fronts end long streams.
    if (pause === FIRST_PAUSE_MS) onLost(reason)
    pause = Math.min(Math.max(2 * pause, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)
    await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

function mayPass(error: unknown): error is CommandError {
  return error instanceof Unreachable || (error instanceof Refusal && error.status >= 500)
}

/** Undefined for what a newer mirror may tell besides. */
function parseEvent({ event, data }: ServerSentEvent): JobEvent | undefined {
  if (event !== 'job' && event !== 'item') return undefined
  const parsed = JobEvent.safeParse({ event, data: parseJson(data) })
  if (parsed.success) return parsed.data
  throw new CommandError('an event of the job cannot be read; use the command of the same version as the mirror', {
    cause: parsed.error,
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
