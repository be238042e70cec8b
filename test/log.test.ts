import { describe, expect, it } from 'vitest'
import { MirrorError } from '../src/errors.ts'
import { createLog, type LogOptions, silentLog } from '../src/log.ts'

function write(level: 'info' | 'warn' | 'error', fields: object, format: LogOptions['format'] = 'json', isTTY = false) {
  const written: string[] = []
  createLog({ level: 'info', format }, { write: (line) => void written.push(line), isTTY })[level](
    fields,
    'it happened',
  )
  expect(written.length).toBe(1)
  return written.join('')
}

function serialized(err: unknown): Record<string, unknown> {
  return JSON.parse(write('warn', { err })).err
}

/** As HTTP clients throw them: with the whole exchange hung on. */
function foreignError(message = 'connect ECONNREFUSED'): Error {
  return Object.assign(new TypeError(message), {
    code: 'ECONNREFUSED',
    request: { headers: { authorization: 'Bearer s3cret' } },
    headers: ['authorization', 'Bearer s3cret'],
    body: Buffer.from('s3cret'),
  })
}

describe('an error of ours in the log', () => {
  it('is its code, its message, its facts and the words of its causes', () => {
    const cause = new Error('outer', { cause: foreignError() })
    const fields = { host: 'registry.example.test', upstreamUrl: 'https://registry.example.test/x' }
    expect(serialized(new MirrorError('UPSTREAM_UNREACHABLE', 'cannot be reached', fields, cause))).toEqual({
      code: 'UPSTREAM_UNREACHABLE',
      message: 'cannot be reached',
      host: 'registry.example.test',
      upstreamUrl: 'https://registry.example.test/x',
      causes: ['outer', 'connect ECONNREFUSED (ECONNREFUSED)'],
    })
  })

  it('has no stack, and nothing of foreign objects', () => {
    const fields = { host: 'registry.example.test', upstreamUrl: 'https://registry.example.test/x' }
    const line = write('warn', { err: new MirrorError('UPSTREAM_TLS', 'not trusted', fields, foreignError()) })
    expect(line).not.toContain('s3cret')
    expect(line).not.toContain('log.test.ts')
    expect(line).not.toContain('stack')
  })

  it('a chain of causes that does not end is cut', () => {
    const circle = new Error('round')
    circle.cause = circle
    const error = new MirrorError('STORAGE_FAILED', 'the disk', { operation: 'read' }, circle)
    expect(serialized(error).causes).toEqual(['round', 'round', 'round', 'round'])
  })

  it('a cause that is no error is left out', () => {
    const error = new MirrorError('STORAGE_FAILED', 'the disk', { operation: 'read' }, { secret: 's3cret' })
    expect(serialized(error)).toEqual({ code: 'STORAGE_FAILED', message: 'the disk', operation: 'read' })
  })
})

describe('a bug in the log', () => {
  it('keeps its stack and its causes, but nothing that a library hung on it', () => {
    const line = write('error', { err: new Error('a bug', { cause: foreignError() }) })
    expect(line).toContain('log.test.ts')
    expect(JSON.parse(line).err).toMatchObject({ type: 'Error', message: expect.stringContaining('a bug') })
    expect(line).toContain('connect ECONNREFUSED')
    expect(line).not.toContain('s3cret')
    const direct = write('error', { err: foreignError() })
    expect(JSON.parse(direct).err).toMatchObject({ type: 'TypeError', code: 'ECONNREFUSED' })
    expect(direct).not.toContain('s3cret')
  })
})

describe('the format', () => {
  it('json is one object a line with an ISO time and the name of the level', () => {
    const line = write('info', { provider: 'acme/widget' })
    expect(line).toMatch(/^\{.*\}\n$/)
    expect(JSON.parse(line)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: 'it happened',
      provider: 'acme/widget',
    })
  })

  it('text is one line that people can read', () => {
    const fields = { provider: 'acme/widget', ms: 12, note: 'two words', list: ['a'] }
    const line = write('warn', fields, 'text')
    const [time, ...words] = line.split(' ')
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(words.join(' ')).toBe('WARN  it happened provider=acme/widget ms=12 note="two words" list=["a"]\n')
  })

  it('text tells the code, the message and the causes of an error, and the stack of a bug', () => {
    const fields = { host: 'h', upstreamUrl: 'https://h/' }
    const ours = new MirrorError('UPSTREAM_UNREACHABLE', 'cannot be reached', fields, foreignError())
    expect(write('warn', { err: ours }, 'text')).toMatch(
      /WARN {2}it happened \[UPSTREAM_UNREACHABLE\] cannot be reached \(because: connect ECONNREFUSED \(ECONNREFUSED\)\)\n$/,
    )
    expect(write('error', { err: new Error('a bug') }, 'text')).toMatch(
      /ERROR it happened a bug\nError: a bug\n {4}at /,
    )
  })

  it('text from elsewhere cannot draw on the terminal, nor make lines of its own', () => {
    const nasty = '\u001b[2Jred\u0007\n2026-12-01T00:00:00.000Z INFO  forged\u009b1m\u007f'
    const err = new MirrorError('STORAGE_FAILED', nasty, { operation: 'read' }, new Error(nasty))
    const line = write('warn', { detail: nasty, err }, 'text')
    expect(line).toMatch(/^\P{Cc}*\n$/u)
  })

  it('auto is text on a terminal and json elsewhere', () => {
    expect(write('info', {}, 'auto', true)).toMatch(/ INFO {2}it happened\n$/)
    expect(JSON.parse(write('info', {}, 'auto'))).toMatchObject({ msg: 'it happened' })
    expect(JSON.parse(write('info', {}, 'json', true))).toMatchObject({ msg: 'it happened' })
  })

  it('lines below the level are not written', () => {
    const written: string[] = []
    const log = createLog({ level: 'warn', format: 'json' }, { write: (line) => void written.push(line) })
    log.info('no')
    log.warn('yes')
    expect(written.length).toBe(1)
    silentLog().fatal('nowhere')
  })
})
