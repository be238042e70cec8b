import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Behaviour } from './fault.ts'
import type { Reply } from './reply.ts'

/**
 * Sends a reply, whole or as badly as `behaviour` says. `signal` fires when the client leaves or the origin stops;
 * it ends every wait. Rejects when the connection breaks on the other side.
 */
export async function deliver(
  response: ServerResponse,
  reply: Reply,
  behaviour: Behaviour,
  signal: AbortSignal,
): Promise<void> {
  const ending = findEnding(behaviour)
  const { size } = reply.body
  response.writeHead(reply.status, {
    ...reply.headers,
    ...(ending.chunked || hasNoBody(reply.status) ? {} : { 'content-length': size }),
  })
  response.flushHeaders()
  if (response.req.method === 'HEAD' || hasNoBody(reply.status)) {
    response.end()
    return
  }
  const chunks = reply.body.read(0, Math.floor(size * ending.fraction))
  const paced = behaviour.trickle === undefined ? chunks : trickle(chunks, behaviour.trickle, signal)
  await pipeline(paced, response, { end: ending.last === 'end', signal })
  if (ending.last === 'break') response.socket?.destroySoon()
}

interface Ending {
  readonly chunked: boolean
  readonly fraction: number
  /** After the last byte: end the answer, break the connection, or leave it open in silence. */
  readonly last: 'end' | 'break' | 'silence'
}

function findEnding({ torn, tornChunked, shortChunked, stall }: Behaviour): Ending {
  if (torn !== undefined) return { chunked: false, fraction: torn, last: 'break' }
  if (tornChunked !== undefined) return { chunked: true, fraction: tornChunked, last: 'break' }
  if (shortChunked !== undefined) return { chunked: true, fraction: shortChunked, last: 'end' }
  if (stall !== undefined) return { chunked: false, fraction: stall, last: 'silence' }
  return { chunked: false, fraction: 1, last: 'end' }
}

/** Ten portions a second. */
async function* trickle(
  chunks: AsyncIterable<Buffer>,
  bytesPerSecond: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const portion = Math.max(1, Math.floor(bytesPerSecond / 10))
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += portion) {
      await sleep((1000 * Math.min(portion, chunk.length - start)) / bytesPerSecond, undefined, { signal })
      yield chunk.subarray(start, start + portion)
    }
  }
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304
}
