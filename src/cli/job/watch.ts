import { Job, type JobItem, JobWithItems } from '../../admin/schema/jobs.ts'
import type { AdminClient } from '../api/client.ts'
import { CommandError } from '../command-error.ts'
import { type JobDisplay, openDisplay } from './display.ts'
import { followJob } from './follow.ts'
import { Interruption } from './interruption.ts'

/** How a job is watched. */
export interface WatchOptions {
  /** No progress. */
  readonly quiet: boolean
  /** What the first Ctrl-C does: the job is cancelled and its end awaited, or left to itself. */
  readonly onInterrupt: 'cancel' | 'leave'
}

/** A job that came to its end, with everything of it that is not well. */
export interface FinishedJob {
  readonly job: Job
  readonly bad: readonly JobItem[]
  /** Ctrl-C cancelled it. */
  readonly isInterrupted: boolean
}

/**
 * Shows a job on standard error until it is finished, and then asks what of it is not well.
 * @throws CommandError as `followJob`; with exit code 130 if it is left before its end
 */
export async function watchJob(client: AdminClient, id: string, options: WatchOptions): Promise<FinishedJob> {
  using display = await openDisplay(options)
  const cancel = () => {
    display.say(`cancelling job ${id}; once more Ctrl-C leaves it to itself`)
    client
      .ask({ method: 'DELETE', path: ['jobs', id], schema: Job })
      .catch((error: CommandError) => display.say(`it could not be cancelled: ${error.message}`))
  }
  using interruption = options.onInterrupt === 'cancel' ? new Interruption(cancel) : new Interruption()
  const job = await showJob(client, id, { display, signal: interruption.signal })
  display.close()
  return { job, bad: await listBad(client, id), isInterrupted: interruption.hasCome && job.state === 'cancelled' }
}

async function showJob(
  client: AdminClient,
  id: string,
  { display, signal }: { readonly display: JobDisplay; readonly signal: AbortSignal },
): Promise<Job> {
  let last: Job | undefined
  try {
    const onLost = (reason: string) => display.say(`${reason}; trying again`)
    for await (const { event, data } of followJob(client, id, { signal, onLost })) {
      if (event === 'item') display.item(data)
      else display.update(data)
      if (event === 'job') last = data
    }
  } catch (error) {
    if (!signal.aborted) throw error
    throw new CommandError(`left; job ${id} goes on: terramirror jobs watch ${id}`, { exitCode: 130 })
  }
  if (last === undefined) throw new CommandError(`${client.name} told nothing of job ${id}`)
  return last
}

/** Everything of a job that is not well. @throws CommandError */
async function listBad(client: AdminClient, id: string): Promise<JobItem[]> {
  const items: JobItem[] = []
  const query = { outcome: 'failed', limit: 500 }
  for await (const page of client.pages({ path: ['jobs', id], query, schema: JobWithItems })) items.push(...page.items)
  return items
}
