import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'

/** Bytes that can be read from any place, any number of times, without holding them all. */
export interface Body {
  readonly size: number
  /** The bytes from `start` up to, not including, `end`. */
  read(start: number, end: number): AsyncIterable<Buffer>
}

/** An answer before it goes on the wire. Content-Length is added when it is sent. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
}

/** A body in memory. */
export function bufferBody(content: Buffer | string): Body {
  const bytes = Buffer.from(content)
  return {
    size: bytes.length,
    async *read(start, end) {
      if (end > start) yield bytes.subarray(start, end)
    },
  }
}

/** A body on disk, read anew for every answer. */
export function fileBody(path: string, size: number): Body {
  return {
    size,
    async *read(start, end) {
      if (end > start) yield* createReadStream(path, { start, end: end - 1 })
    },
  }
}

/** The whole body in memory. */
export function readAll(body: Body): Promise<Buffer> {
  return buffer(body.read(0, body.size))
}

/** A JSON document. */
export function jsonReply(status: number, document: unknown): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: bufferBody(JSON.stringify(document)),
  }
}

/** A published file with a strong ETag; a Range can be cut from it. */
export function fileReply(body: Body, sha256: string): Reply {
  return {
    status: 200,
    headers: { 'content-type': 'application/octet-stream', etag: `"${sha256}"`, 'accept-ranges': 'bytes' },
    body,
  }
}

/**
 * Cuts one byte range from a 200 with an ETag, as RFC 9110 sections 13 and 14 say: If-Match guards (412), If-Range and
 * several ranges at once fall back to the whole, a range past the end is 416. Any other reply stays as it is.
 */
export function cutRange(reply: Reply, headers: { readonly [name: string]: string | string[] | undefined }): Reply {
  const { etag } = reply.headers
  if (reply.status !== 200 || etag === undefined) return reply
  if (headers['if-match'] !== undefined && headers['if-match'] !== etag) {
    return { status: 412, headers: { etag }, body: bufferBody('') }
  }
  if (headers['if-range'] !== undefined && headers['if-range'] !== etag) return reply
  const match = /^bytes=(\d*)-(\d*)$/.exec(String(headers.range ?? ''))
  if (match === null) return reply

  const { size, read } = reply.body
  const [, first = '', last = ''] = match
  if (first === '' && last === '') return reply
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  if (start >= end) {
    return { status: 416, headers: { etag, 'content-range': `bytes */${size}` }, body: bufferBody('') }
  }
  return {
    status: 206,
    headers: { ...reply.headers, 'content-range': `bytes ${start}-${end - 1}/${size}` },
    body: { size: end - start, read: (from, to) => read(start + from, start + to) },
  }
}
