import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { ClientWork } from '../../../src/mirror/client-work.ts'
import { isFinal, type Job, type JobEvent } from '../../../src/mirror/jobs/job.ts'
import type { JobContext, JobKind } from '../../../src/mirror/jobs/job-kind.ts'
import { Jobs, type JobsParts } from '../../../src/mirror/jobs/jobs.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import { recordingLog, StillClock } from '../parts-fixture.ts'

export const Names = z.object({ items: z.array(z.string()) })
export type Names = z.infer<typeof Names>

/** A kind whose items are names, and whose work a test decides. Skips what is settled. */
export function namesKind(
  work: (item: string, job: JobContext) => Promise<void>,
  options: Partial<Pick<JobKind<Names>, 'kind' | 'check'>> = {},
): JobKind<Names> {
  return {
    kind: 'warm',
    request: Names,
    ...options,
    async run({ items }, job) {
      job.add(items.map((item) => ({ item })))
      const open = items.filter((item) => !job.settled.has(item))
      await job.each(open, (item) => work(item, job))
    },
  }
}

/** The work of most tests: an item is done with three bytes. */
export async function done(item: string, job: JobContext): Promise<void> {
  job.settle(item, { outcome: 'done', bytes: 3 })
}

/** Jobs over a state store in memory, with what a test looks into. */
export function createJobs(kinds: readonly JobKind<Names>[], parts: Partial<JobsParts> = {}) {
  const { log, lines } = recordingLog()
  const clock = new StillClock()
  const store = parts.store ?? new MemoryStateStore()
  const clientWork = parts.clientWork ?? new ClientWork()
  const jobs = new Jobs({ now: clock.now, log, ...parts, store, clientWork })
  for (const kind of kinds) jobs.register(kind)
  return { jobs, store, clock, clientWork, log, lines }
}

/** The job when it has ended. */
export async function ended(jobs: Jobs, id: string): Promise<Job> {
  for (;;) {
    const job = jobs.get(id)
    if (isFinal(job.state)) return job
    await setTimeout(1)
  }
}

/** All events of a job to its end. */
export async function eventsOf(jobs: Jobs, id: string): Promise<JobEvent[]> {
  return await Array.fromAsync(jobs.events(id, AbortSignal.timeout(20_000)))
}

/** `count` names in order. */
export function names(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `item ${String(n).padStart(6, '0')}`)
}
