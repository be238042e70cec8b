import { Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readEventStream } from '../../../src/cli/api/event-stream.ts'

async function read(...chunks: (string | Buffer)[]): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of readEventStream(Readable.from(chunks.map((chunk) => Buffer.from(chunk)))))
    events.push(event)
  return events
}

describe('a stream of server-sent events', () => {
  test.each([
    ['event: job\ndata: {"a":1}\n\n', [{ event: 'job', data: '{"a":1}' }]],
    [
      'data: x\n\ndata: y\n\n',
      [
        { event: 'message', data: 'x' },
        { event: 'message', data: 'y' },
      ],
    ],
    ['event:job\r\ndata:x\r\n\r\n', [{ event: 'job', data: 'x' }]],
    ['event: job\rdata: x\r\r: more', [{ event: 'job', data: 'x' }]],
    ['data: a\ndata: b\n\n', [{ event: 'message', data: 'a\nb' }]],
    [': ping\n\nid: 7\nretry: 9\nevent: item\ndata:  two spaces\n\n', [{ event: 'item', data: ' two spaces' }]],
    ['data\n\n', [{ event: 'message', data: '' }]],
    ['event: job\n\ndata: x\n\n', [{ event: 'message', data: 'x' }]],
    ['data: unfinished\n', []],
  ])('%j', async (text, events) => {
    expect(await read(text)).toEqual(events)
  })

  test('reads the same however it is cut into pieces', async () => {
    const bytes = Buffer.from('event: job\r\ndata: größer ✓\r\n\r\n: c\n\nevent: item\ndata: a\ndata: b\n\n')
    const whole = await read(bytes)
    expect(whole).toHaveLength(2)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
        expect(await read(...pieces.filter(({ length }) => length > 0))).toEqual(whole)
      }),
    )
  })

  test('a message without an end is given up', async () => {
    const endless = Array.from({ length: 50 }, () => Buffer.alloc(100_000, 'x'))
    await expect(read(...endless)).rejects.toThrow('too long')
  })
})
