import { Counter, Gauge, type Registry } from 'prom-client'
import type { JobObserver, ObservedJobState } from '../mirror/observer.ts'

type Kind = Parameters<JobObserver['jobMoved']>[0]['kind']

/** What the jobs of operators do. */
export class JobMetrics implements JobObserver {
  readonly #open: Gauge<'kind' | 'state'>
  readonly #ended: Counter<'kind' | 'state'>
  readonly #items: Counter<'kind' | 'outcome'>

  constructor(registry: Registry) {
    const registers = [registry]
    this.#open = new Gauge({
      name: 'terramirror_jobs_open',
      help: 'Jobs that are queued or running now, by kind and state.',
      labelNames: ['kind', 'state'],
      registers,
    })
    this.#ended = new Counter({
      name: 'terramirror_jobs_ended_total',
      help: 'Jobs that came to their end, by kind and state: done, failed or cancelled.',
      labelNames: ['kind', 'state'],
      registers,
    })
    for (const kind of ['warm', 'verify'] as const) {
      for (const state of ['queued', 'running'] as const) this.#open.set({ kind, state }, 0)
      for (const state of ['done', 'failed', 'cancelled'] as const) this.#ended.inc({ kind, state }, 0)
    }
    this.#items = new Counter({
      name: 'terramirror_job_items_total',
      help: 'Things that jobs have settled, by kind of job and outcome.',
      labelNames: ['kind', 'outcome'],
      registers,
    })
  }

  jobMoved({ kind, from, to }: { kind: Kind; from?: ObservedJobState | undefined; to: ObservedJobState }): void {
    if (from !== undefined && isOpen(from)) this.#open.dec({ kind, state: from })
    if (isOpen(to)) this.#open.inc({ kind, state: to })
    else this.#ended.inc({ kind, state: to })
  }

  jobItemSettled({ kind, outcome }: Parameters<JobObserver['jobItemSettled']>[0]): void {
    this.#items.inc({ kind, outcome })
  }
}

function isOpen(state: ObservedJobState): boolean {
  return state === 'queued' || state === 'running'
}
