import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import type { ArrivingArchive } from '../mirror/archive-tail.ts'
import type { ArchiveFacts } from '../mirror/archives.ts'
import type { Answer } from '../mirror/call.ts'
import type { BlobReader, OpenBlob } from '../store/blob-store.ts'
import { writeBlob } from './blob-body.ts'
import { type ByteRange, parseByteRange } from './byte-range.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'

const ZIP = 'application/zip'

/**
 * Answers HEAD for an archive from its facts alone. While it is not held there is no length, and no promise of ranges:
 * old clients take `Accept-Ranges` with no length for a complete empty file (client-contract A13).
 */
export function headArchive(
  context: Context<HttpEnv>,
  { value, outcome }: Answer<ArchiveFacts>,
  { mediaType, trustsBareRanges }: ArchiveRequestRules,
): Response {
  exchangeOf(context.env.incoming).outcome = outcome
  // A validator that is told before the bytes are verified would let a range of the right ones complete wrong ones.
  const tag = value.size === undefined && !trustsBareRanges ? {} : { ETag: entityTag(value.digest) }
  const headers = { ...archiveHeaders(outcome, mediaType), ...tag }
  if (matchesAny(context.req.header('if-none-match'), value.digest)) return new Response(null, { status: 304, headers })
  if (value.size === undefined) return new Response(null, { headers })
  const length = { 'Accept-Ranges': 'bytes', 'Content-Length': String(value.size) }
  return new Response(null, { headers: { ...headers, ...length } })
}

/** How an archive is asked for and sent. */
export interface ArchiveRequestRules {
  /**
   * False: a client may have a part of wrong bytes that it knows no validator of, so a range that could be put behind
   * it needs a validator (`If-Range`).
   */
  readonly trustsBareRanges: boolean
  /** Default that of a zip. */
  readonly mediaType?: string
}

/** True if the client asks for all of the archive, whatever it has of it. */
export function wantsWhole({ req }: Context<HttpEnv>): boolean {
  return req.header('range') === undefined && req.header('if-none-match') === undefined
}

/** Sends an archive, or the one range of it that was asked for, past Hono to the socket. Disposes of the blob. */
export async function sendArchive(
  context: Context<HttpEnv>,
  { value, outcome }: Answer<OpenBlob>,
  rules: ArchiveRequestRules,
): Promise<Response> {
  await using blob = value
  const { outgoing } = context.env
  exchangeOf(context.env.incoming).outcome = outcome
  const headers = {
    ...archiveHeaders(outcome, rules.mediaType),
    ETag: entityTag(blob.digest),
    'Accept-Ranges': 'bytes',
  }
  const range = findRange(context, blob, rules)
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
  return await sendBody(context, blob, { start, end })
}

/**
 * Sends an archive while it comes in. Without ETag and Accept-Ranges: should the bytes turn out wrong, nothing that the
 * client has of them can be completed by a range of the right ones. Disposes of the archive.
 */
export async function sendArrivingArchive(
  context: Context<HttpEnv>,
  { value, outcome }: Answer<ArrivingArchive>,
): Promise<Response> {
  await using archive = value
  exchangeOf(context.env.incoming).outcome = outcome
  const { size } = archive
  context.env.outgoing.writeHead(200, {
    ...archiveHeaders(outcome),
    ...(size === undefined ? {} : { 'Content-Length': size }),
  })
  return await sendBody(context, archive, { start: 0, end: size ?? Number.POSITIVE_INFINITY })
}

async function sendBody({ env }: Context<HttpEnv>, blob: BlobReader, range: ByteRange): Promise<Response> {
  const exchange = exchangeOf(env.incoming)
  const onSent = (bytes: number): void => {
    exchange.sentBytes += bytes
  }
  try {
    await writeBlob(env.outgoing, blob, { ...range, onSent })
  } catch (error) {
    // The head is sent and the connection torn: what is left is to tell the log, and not Hono, which would answer.
    exchange.error = error instanceof Error ? error : new Error(String(error))
  }
  return RESPONSE_ALREADY_SENT
}

function archiveHeaders(outcome: string, mediaType = ZIP): Record<string, string> {
  return {
    'Content-Type': mediaType,
    // The lock files of clients depend on these very bytes: nobody on the way may recompress them.
    'Cache-Control': 'public, max-age=3600, no-transform',
    'Terramirror-Cache': outcome,
  }
}

function entityTag(digest: string): string {
  return `"${digest}"`
}

/** The range to send; undefined for all. A version's bytes never change, so bare ranges are fine; a date never matches. */
function findRange(
  { req }: Context<HttpEnv>,
  { digest, size }: OpenBlob,
  { trustsBareRanges }: ArchiveRequestRules,
): ByteRange | 'unsatisfiable' | undefined {
  const ifRange = req.header('if-range')
  if (ifRange !== undefined && ifRange !== entityTag(digest)) return undefined
  const range = parseByteRange(req.header('range'), size)
  const isBare = ifRange === undefined && range !== undefined && range !== 'unsatisfiable' && range.start > 0
  return isBare && !trustsBareRanges ? undefined : range
}

function matchesAny(ifNoneMatch: string | undefined, digest: string): boolean {
  return ifNoneMatch?.trim() === '*' || ifNoneMatch?.includes(entityTag(digest)) === true
}
