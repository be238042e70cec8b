import { Counter, Gauge, type Registry } from 'prom-client'
import type { ErrorCode } from '../errors.ts'
import type { MirrorObserver } from '../mirror/observer.ts'

/** Shown from the start: how much a series has grown since it was not there cannot be asked. */
const REFUSALS = [
  'CHECKSUMS_INVALID',
  'CHECKSUM_MISSING',
  'CHECKSUM_MISMATCH',
  'SIGNATURE_INVALID',
  'SIGNATURE_MISSING',
  'SIGNATURE_REQUIRED',
  'KEY_UNREADABLE',
] as const satisfies readonly ErrorCode[]

/** What was let in and what was refused, and what is on its way in. */
export class VerificationMetrics implements MirrorObserver {
  readonly #verdicts: Counter<'verdict'>
  readonly #releaseChanges: Counter
  readonly #downloads: Gauge

  constructor(registry: Registry) {
    const registers = [registry]
    this.#verdicts = new Counter({
      name: 'terramirror_verification_verdicts_total',
      help: 'Platforms of releases that were let in (by rule) or refused (by error code).',
      labelNames: ['verdict'],
      registers,
    })
    for (const verdict of REFUSALS) this.#verdicts.inc({ verdict }, 0)
    this.#releaseChanges = new Counter({
      name: 'terramirror_release_changes_total',
      help: 'How often an origin offered other bytes for a version that was seen before.',
      registers,
    })
    this.#downloads = new Gauge({
      name: 'terramirror_downloads_in_flight',
      help: 'Archives of providers, and modules, that are being fetched from origins.',
      registers,
    })
  }

  judged(verdict: Parameters<MirrorObserver['judged']>[0]): void {
    this.#verdicts.inc({ verdict })
  }

  releaseChanged(): void {
    this.#releaseChanges.inc()
  }

  downloading(change: 1 | -1): void {
    this.#downloads.inc(change)
  }
}
