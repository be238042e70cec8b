import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { readConfiguration, readLockFile } from '../../src/hcl/hcl-reader.ts'

const SIZE = 1_000_000
const fill = (part: string) => part.repeat(Math.floor(SIZE / part.length))
const numbered = (count: number, text: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => text(n)).join('')

/** Texts of about a megabyte that cost a parser more than others. */
const TEXTS: Readonly<Record<string, string>> = {
  'open parentheses': `x = ${fill('(')}`,
  'open templates': `x = "${fill('${"')}`,
  'nested lists': `x = ${'['.repeat(SIZE / 2 - 10)}${']'.repeat(SIZE / 2 - 10)}`,
  'nested blocks': `${'a {\n'.repeat(SIZE / 6 - 10)}${'}\n'.repeat(SIZE / 6 - 10)}`,
  garbage: numbered(SIZE, (n) => '!@#$%^&*(){}[]"<>?/|\\'.charAt((n * 7919) % 21)),
  'NUL bytes': fill('\0'),
  'many providers': numbered(35_000, (n) => `provider "p${n}" {\n}\n`),
}

/** In this thread it would be seconds. */
const MAX_MS = 500

/** Processor time of this thread while `work` runs. */
async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

describe('hostile text', () => {
  it.each(Object.keys(TEXTS))(
    'of a megabyte does not hold the process up: %s',
    async (name) => {
      const text = TEXTS[name] ?? ''
      const spent = await cpuMsOf(async () => {
        const facts = await readConfiguration(new Map([['main.tf', text]]))
        expect(facts.problems).not.toEqual([])
        expect(facts.providers.length).toBeLessThanOrEqual(2_000)
      })
      expect(spent).toBeLessThan(MAX_MS)
    },
    120_000,
  )

  it('in JSON neither', async () => {
    for (const text of [
      `{"provider":${'['.repeat(SIZE / 2 - 10)}${']'.repeat(SIZE / 2 - 10)}}`,
      `${'{"a":'.repeat(SIZE / 6)}1${'}'.repeat(SIZE / 6)}`,
      `{"a":"${fill('\\n').slice(0, -20)}`,
      fill('['),
    ]) {
      const spent = await cpuMsOf(async () => {
        expect((await readConfiguration(new Map([['main.tf.json', text]]))).problems).toHaveLength(1)
      })
      expect(spent).toBeLessThan(MAX_MS)
    }
  }, 120_000)

  it('that is larger is refused unread', async () => {
    const text = '#'.repeat(1_048_577)
    await expect(readLockFile(text)).rejects.toMatchObject({ code: 'CONFIGURATION_FILE_INVALID' })
    const { problems } = await readConfiguration(
      new Map([
        ['main.tf', text],
        ['other.tf.json', `[${' '.repeat(1_048_576)}]`],
      ]),
    )
    expect(problems.map(({ file, reason }) => [file, reason.split(':')[0]])).toEqual([
      ['main.tf', 'File too large'],
      ['other.tf.json', 'File too large'],
    ])
    const many = new Map(Array.from({ length: 2_001 }, (_, n) => [`${n}.tf`, '']))
    await expect(readConfiguration(many)).rejects.toThrow('more than 2000 files')
  })

  it('has the line of its first fault, however much garbage follows', async () => {
    const good = numbered(20_000, (n) => `a${n} = 1\n`)
    for (const after of [TEXTS.garbage?.slice(0, 300_000) ?? '', good.replaceAll('a', 'b')]) {
      const { problems } = await readConfiguration(new Map([['main.tf', `${good})\n${after}`]]))
      // Where garbage follows, the grammar takes the line before for a part of it.
      expect(problems.map(({ line }) => line)).toEqual([expect.toBeOneOf([20_000, 20_001])])
    }
  })

  it('is given up when the caller does, at work or in the queue, and others are read', async () => {
    const stop = new AbortController()
    const large = new Map([['main.tf', TEXTS['open templates'] ?? '']])
    const given = [large, large].map((files) => readConfiguration(files, '', { signal: stop.signal }))
    const other = readConfiguration(new Map([['main.tf', 'provider "aws" {}']]))
    setTimeout(() => stop.abort(new Error('enough')), 50)
    for (const each of given) await expect(each).rejects.toThrow('enough')
    expect((await other).providers).toHaveLength(1)
  })

  it('is not waited for by who gives up in the queue behind it', async () => {
    let isRead = false
    const reading = readConfiguration(new Map([['main.tf', TEXTS['open templates'] ?? '']])).then(() => {
      isRead = true
    })
    const stop = new AbortController()
    const behind = readConfiguration(new Map([['main.tf', 'provider "aws" {}']]), '', { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(behind).rejects.toThrow('enough')
    expect(isRead).toBe(false)
    await reading
  })

  it('is read after it as well as before', async () => {
    expect((await readConfiguration(new Map([['main.tf', 'provider "aws" {}']]))).providers).toHaveLength(1)
  })

  it('gives facts or an error of ours, whatever it is', async () => {
    const word = fc.constantFrom(
      ...['terraform', 'required_providers', 'provider', 'resource', 'module', 'source', 'version', 'aws', '"aws"'],
      ...[
        '{',
        '}',
        '[',
        ']',
        '=',
        '"',
        '${',
        '\n',
        '\n',
        ' ',
        '.',
        '1',
        'null',
        '<<A',
        '\\u00',
        '#',
        ',',
        ':',
        '\ufeff',
      ],
    )
    const text = fc.oneof(
      fc.string(),
      fc.array(word, { maxLength: 30 }).map((words) => words.join(' ')),
    )
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom('main.tf', 'main.tf.json', 'override.tf'), async (input, file) => {
        const facts = await readConfiguration(new Map([[file, input]]))
        for (const problem of facts.problems) {
          expect(problem).toEqual({ file, line: expect.any(Number), reason: expect.stringMatching(/./) })
          expect(problem.line).toBeLessThanOrEqual(input.split('\n').length)
        }
        await readLockFile(input).catch((error: unknown) => {
          if (!isMirrorError(error) || error.message.includes('HCL thread failed')) throw error
        })
      }),
      { numRuns: 300 },
    )
  }, 120_000)
})
