import type { Readable } from 'node:stream'

/** One message of a stream of server-sent events. */
export interface ServerSentEvent {
  /** `message` where the stream names none. */
  readonly event: string
  readonly data: string
}

const MAX_MESSAGE_CHARACTERS = 4_000_000

/**
 * Reads `text/event-stream` by the rules of the HTML standard (9.2.6); comments and unfinished messages are dropped.
 * Ending the loop destroys the stream.
 * @throws Error for a message of unreasonable length, and what the stream throws
 */
export async function* readEventStream(stream: Readable): AsyncGenerator<ServerSentEvent, void, undefined> {
  let rest = ''
  let event = ''
  let data: string[] = []
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = `${rest}${chunk}`.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    if (rest.length > MAX_MESSAGE_CHARACTERS) throw new Error('a line of the stream of events is too long')
    for (const line of lines) {
      if (line !== '') {
        const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
        if (field === 'event') event = value
        if (field === 'data') data.push(value)
        continue
      }
      if (data.length > 0) yield { event: event === '' ? 'message' : event, data: data.join('\n') }
      event = ''
      data = []
    }
  }
}
