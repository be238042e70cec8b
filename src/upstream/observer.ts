import type { RetryReason } from './failure.ts'

/** Told what happens on the way to upstreams: for metrics. Methods must not throw. */
export interface UpstreamObserver {
  /** A request leaves (1), or its answer is here with its whole body, or will not come (-1). */
  sending(host: string, change: 1 | -1): void
  /** One request, redirects counted singly. `status` is `error` if no answer came. */
  answered(host: string, status: number | 'error', durationMs: number): void
  /** Bytes of a body as they came over the wire, before decoding. */
  received(host: string, bytes: number): void
  /** An attempt failed and another one follows. */
  retried(host: string, reason: RetryReason): void
}
