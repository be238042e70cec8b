import type { Call } from '../call.ts'
import { createDeadline } from '../deadline.ts'

/** As long as a client would wait for a document. */
const DOCUMENT_MS = 8_000

/** A call on behalf of work that ends with `leaving`; `ms` is the longest that it waits. */
export function originCall(leaving: AbortSignal, ms = DOCUMENT_MS): Call {
  const { signal, remainingMs } = createDeadline(ms)
  return { deadline: { signal: AbortSignal.any([signal, leaving]), remainingMs }, hops: [], leaving }
}
