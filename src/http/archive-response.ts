import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import type { ArchiveFacts } from '../mirror/archives.ts'
import type { Answer } from '../mirror/call.ts'
import type { OpenBlob } from '../store/blob-store.ts'
import { writeBlob } from './blob-body.ts'
import { parseByteRange } from './byte-range.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'

/**
 * Answers HEAD for an archive from its facts alone. While it is not held there is no length, and no promise of ranges:
 * old clients take `Accept-Ranges` with no length for a complete empty file (client-contract A13).
 */
export function headArchive(
  context: Context<HttpEnv>,
  { value, outcome }: Answer<ArchiveFacts>,
  mediaType = 'application/zip',
): Response {
  exchangeOf(context.env.incoming).outcome = outcome
  const headers = archiveHeaders(value.digest, outcome, mediaType)
  if (matchesAny(context.req.header('if-none-match'), value.digest)) return new Response(null, { status: 304, headers })
  if (value.size === undefined) return new Response(null, { headers })
  const length = { 'Accept-Ranges': 'bytes', 'Content-Length': String(value.size) }
  return new Response(null, { headers: { ...headers, ...length } })
}

/** Sends an archive, or the one range of it that was asked for, past Hono to the socket. Disposes of the blob. */
export async function sendArchive(
  context: Context<HttpEnv>,
  { value, outcome }: Answer<OpenBlob>,
  mediaType = 'application/zip',
): Promise<Response> {
  await using blob = value
  const { incoming, outgoing } = context.env
  const exchange = exchangeOf(incoming)
  exchange.outcome = outcome
  const headers = { ...archiveHeaders(blob.digest, outcome, mediaType), 'Accept-Ranges': 'bytes' }
  const range = mayUseRange(context.req.header('if-range'), blob.digest)
    ? parseByteRange(context.req.header('range'), blob.size)
    : undefined
  if (matchesAny(context.req.header('if-none-match'), blob.digest)) return new Response(null, { status: 304, headers })
  if (range === 'unsatisfiable') {
    return new Response(null, { status: 416, headers: { ...headers, 'Content-Range': `bytes */${blob.size}` } })
  }
  const { start, end } = range ?? { start: 0, end: blob.size }
  outgoing.writeHead(range === undefined ? 200 : 206, {
    ...headers,
    'Content-Length': end - start,
    ...(range === undefined ? {} : { 'Content-Range': `bytes ${start}-${end - 1}/${blob.size}` }),
  })
  const onSent = (bytes: number): void => {
    exchange.sentBytes += bytes
  }
  try {
    await writeBlob(outgoing, blob, { start, end, onSent })
  } catch (error) {
    // The head is sent and the connection torn: what is left is to tell the log, and not Hono, which would answer.
    exchange.error = error instanceof Error ? error : new Error(String(error))
  }
  return RESPONSE_ALREADY_SENT
}

function archiveHeaders(digest: string, outcome: string, mediaType: string): Record<string, string> {
  return {
    'Content-Type': mediaType,
    ETag: entityTag(digest),
    // The lock files of clients depend on these very bytes: nobody on the way may recompress them.
    'Cache-Control': 'public, max-age=3600, no-transform',
    'Terramirror-Cache': outcome,
  }
}

function entityTag(digest: string): string {
  return `"${digest}"`
}

/** Without If-Range a range is always fine: a version's bytes never change. A date is never a match. */
function mayUseRange(ifRange: string | undefined, digest: string): boolean {
  return ifRange === undefined || ifRange === entityTag(digest)
}

function matchesAny(ifNoneMatch: string | undefined, digest: string): boolean {
  return ifNoneMatch?.trim() === '*' || ifNoneMatch?.includes(entityTag(digest)) === true
}
