import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, type ErrorFields, MirrorError } from '../../src/errors.ts'
import { errorAnswer, isAbsence } from '../../src/http/error-response.ts'

const source = readFileSync(new URL('../../src/errors.ts', import.meta.url), 'utf8')
const union = source.slice(source.indexOf('interface ErrorFields'), source.indexOf('export type ErrorCode'))
const CODES = [...union.matchAll(/^ {2}([A-Z_]+):/gm)].map(([, code]) => code as ErrorCode)

/** An error of any code, whatever it carries. */
function errorOf(code: ErrorCode, fields: object = {}): MirrorError {
  return new MirrorError(code, `a message of ${code}`, fields as ErrorFields[ErrorCode])
}

describe('every code', () => {
  it.each(CODES)('%s has a status, and an answer that is JSON with message, code and request id', (code) => {
    const { status, headers, body } = errorAnswer(errorOf(code), 'the-id')
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(600)
    expect(JSON.parse(body)).toEqual({ error: `a message of ${code}`, code, request_id: 'the-id' })
    expect(headers).toMatchObject({
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
    })
  })

  it('is found in the union at all', () => {
    expect(CODES.length).toBeGreaterThan(25)
  })

  it('an outage or a refusal is never told as "not found", nor the reverse', () => {
    const absent = CODES.filter((code) => errorAnswer(errorOf(code), '').status === 404)
    expect(absent.sort()).toEqual([
      'INVALID_ADDRESS',
      // Of the admin API alone.
      'ITEM_NOT_FOUND',
      'MODULE_NOT_FOUND',
      'NOT_CACHED',
      'NO_MODULE_SERVICE',
      'NO_PROVIDER_SERVICE',
      'ORIGIN_NOT_ALLOWED',
      'PLATFORM_NOT_FOUND',
      'PROVIDER_NOT_FOUND',
      'ROUTE_NOT_FOUND',
      'VERSION_NOT_FOUND',
    ])
    for (const code of CODES) expect(isAbsence(errorOf(code))).toBe(absent.includes(code))
    expect(isAbsence(new Error('a bug'))).toBe(false)
  })
})

describe('what an error knows of the upstream', () => {
  it('is told under the names of the protocol', () => {
    const fields = { host: 'h', upstreamUrl: 'https://registry.example.test/x', upstreamStatus: 403, detail: 'no' }
    expect(JSON.parse(errorAnswer(errorOf('UPSTREAM_STATUS', fields), 'the-id').body)).toEqual({
      error: 'a message of UPSTREAM_STATUS',
      code: 'UPSTREAM_STATUS',
      upstream_url: 'https://registry.example.test/x',
      upstream_status: 403,
      request_id: 'the-id',
    })
  })

  it('hint and base URL help who asked wrongly; all other fields stay inside', () => {
    const hint = errorAnswer(errorOf('INVALID_ADDRESS', { input: 'i', reason: 'r', hint: 'do this' }), '')
    expect(JSON.parse(hint.body)).toMatchObject({ hint: 'do this' })
    const route = errorAnswer(errorOf('ROUTE_NOT_FOUND', { baseUrl: 'https://m.example/providers/' }), '')
    expect(JSON.parse(route.body)).toMatchObject({ base_url: 'https://m.example/providers/' })
    expect(Object.keys(JSON.parse(hint.body)).sort()).toEqual(['code', 'error', 'hint', 'request_id'])
  })

  it('an empty URL is not told', () => {
    expect(errorAnswer(errorOf('UPSTREAM_INVALID', { upstreamUrl: '' }), '').body).not.toContain('upstream_url')
  })
})

describe('a bug', () => {
  it('is a bare 500: its text, which may hold anything, goes to the log alone', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 12, unit: 'grapheme-ascii' }), (secret) => {
        for (const bug of [new Error(secret), Object.assign(new TypeError(secret), { headers: secret }), secret]) {
          const { status, body } = errorAnswer(bug, 'the-id')
          expect(status).toBe(500)
          expect(Object.keys(JSON.parse(body))).toEqual(['error', 'code', 'request_id'])
          expect(body).toBe(errorAnswer(undefined, 'the-id').body)
        }
      }),
    )
    expect(JSON.parse(errorAnswer(new Error('x'), 'the-id').body)).toMatchObject({
      code: 'UNEXPECTED',
      request_id: 'the-id',
    })
  })

  it('that only looks like an error of ours is none', () => {
    const impostor = Object.assign(new Error('secret'), { code: 'PROVIDER_NOT_FOUND', fields: {} })
    expect(errorAnswer(impostor, '').status).toBe(500)
  })
})

describe('headers', () => {
  it('a client is never told to wait longer than three seconds, nor not at all (client-contract A8)', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (retryAfterMs) => {
        const limited = errorOf('UPSTREAM_RATE_LIMITED', {
          host: 'h',
          upstreamUrl: 'u',
          upstreamStatus: 429,
          retryAfterMs,
        })
        const { status, headers } = errorAnswer(limited, '')
        expect(status).toBe(503)
        expect(headers['Retry-After']).toMatch(/^[123]$/)
      }),
    )
    expect(errorAnswer(errorOf('SHUTTING_DOWN'), '').headers['Retry-After']).toBe('1')
  })

  it('only a 503 tells to wait, only a 405 names methods, only a 404 is marked as negative', () => {
    for (const code of CODES) {
      const { status, headers } = errorAnswer(errorOf(code), '')
      expect('Retry-After' in headers).toBe(status === 503)
      expect(headers.Allow).toBe(status === 405 ? 'GET, HEAD' : undefined)
      expect(headers['Terramirror-Cache']).toBe(status === 404 ? 'negative' : undefined)
    }
  })
})
