import { redactUrl } from '../errors.ts'

const MAX_LENGTH = 200
/** A scheme begins a word: trying each letter of a long word as its start takes time quadratic in the length. */
const URLS = /(?<![a-z])[a-z]+:\/\/[^\s"'<>]+/gi

/**
 * What an upstream says in the body of an error: the message of a JSON document as registries and object stores write
 * them (`{"errors":["…"]}`, `{"message":"…"}`, `{"error":"…"}`), or plain text. One line, shortened, control characters
 * and the secret parts of URLs taken out (field-reports B31). Undefined if it says nothing that we can read.
 */
export function findOriginText(body: Buffer, format: 'json' | 'text'): string | undefined {
  const text = body.toString('utf8')
  const line = (format === 'json' ? findMessage(text) : text)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .replaceAll(URLS, (url) => redactUrl(url))
    .trim()
  return line === '' ? undefined : line.slice(0, MAX_LENGTH)
}

function findMessage(json: string): string {
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return ''
  }
  if (typeof document !== 'object' || document === null) return ''
  if ('errors' in document && Array.isArray(document.errors)) return document.errors.filter(isString).join('; ')
  if ('message' in document && isString(document.message)) return document.message
  return 'error' in document && isString(document.error) ? document.error : ''
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}
