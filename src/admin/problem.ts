import { HTTPException } from 'hono/http-exception'
import { isMirrorError } from '../errors.ts'
import { errorAnswer } from '../http/error-response.ts'
import { requestInvalid } from './request-problems.ts'

/** What the errors of a request are in the admin API, where everything wrong with a request is one code. */
export function problemOf(error: unknown): Error {
  if (error instanceof HTTPException) {
    // The two that validation throws; there are no others here.
    const problem = error.status === 415 ? 'Content-Type: expected application/json' : 'body: expected JSON'
    return requestInvalid([problem], error)
  }
  if (isMirrorError(error) && error.is('INVALID_ADDRESS')) return requestInvalid([error.message], error)
  return error instanceof Error ? error : new Error(String(error))
}

/** The answer for any error: `Problem` as JSON. */
export function problemResponse(error: Error, requestId: string): Response {
  const { status, headers, body } = errorAnswer(error, requestId)
  const { 'Terramirror-Cache': _, ...own } = headers
  return new Response(body, { status, headers: own })
}
