import { MirrorError, redactUrl } from '../../errors.ts'
import type { JsonValue } from '../../protocol/json.ts'
import type { DocumentAnswer } from '../http-client.ts'
import { findOriginText } from '../origin-text.ts'

/** The deepest document of a registry has six. */
const MAX_NESTING = 100

/**
 * The JSON of a registry's answer. Any media type but HTML is taken, as the clients do (client-contract C3).
 * @throws MirrorError `UPSTREAM_INVALID`, naming the URL and the media type (field-reports B04)
 */
export function parseJsonAnswer(answer: DocumentAnswer): JsonValue {
  if (answer.mediaType === 'text/html') throw invalid(answer, 'a web page')
  const text = answer.body.toString('utf8')
  if (nestsDeeply(text)) throw invalid(answer, `JSON that nests deeper than ${MAX_NESTING} levels`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalid(answer, 'something that is not JSON', error)
  }
}

const [QUOTE, BACKSLASH, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d]

/** Such JSON can be read, but nothing can write it again: the stack is too small. Brackets in strings do not count. */
function nestsDeeply(text: string): boolean {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inString) {
      if (code === BACKSLASH) at++
      else if (code === QUOTE) inString = false
    } else if (code === QUOTE) inString = true
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) depth++
    else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--
    if (depth > MAX_NESTING) return true
  }
  return false
}

function invalid(answer: DocumentAnswer, found: string, cause?: unknown): MirrorError {
  const upstreamUrl = redactUrl(answer.url)
  const reason = `expected JSON, found ${found} (${answer.mediaType === '' ? 'no media type' : answer.mediaType})`
  const message = `${upstreamUrl} is not what a provider registry answers: ${reason}`
  return new MirrorError('UPSTREAM_INVALID', message, { host: answer.url.host, upstreamUrl, reason }, cause)
}

/** An answer that means neither success nor absence, as an error; `what` names what was asked for. */
export function statusError(answer: DocumentAnswer, what: string): MirrorError<'UPSTREAM_STATUS'> {
  const upstreamUrl = redactUrl(answer.url)
  const detail = findOriginText(answer.body, 'json')
  const said = detail === undefined ? '' : `: ${JSON.stringify(detail)}`
  const message = `${what} ${answer.status} from ${upstreamUrl}${said}${hint(answer.status)}`
  return new MirrorError('UPSTREAM_STATUS', message, {
    host: answer.url.host,
    upstreamUrl,
    upstreamStatus: answer.status,
    ...(detail === undefined ? {} : { detail }),
  })
}

function hint(status: number): string {
  return status === 401 || status === 403 ? '; set or check the token of this origin' : ''
}
