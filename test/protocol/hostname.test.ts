import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { displayHostname, parseHostname, splitHostname } from '../../src/protocol/hostname.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

const CANONICAL = /^[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?$/

describe('parseHostname', () => {
  it.each([
    ['registry.terraform.io', 'registry.terraform.io'],
    ['Reg.Example.TEST', 'reg.example.test'],
    ['localhost', 'localhost'],
    ['localhost:1211', 'localhost:1211'],
    ['1example.com', '1example.com'],
    ['1.2.3.4.example', '1.2.3.4.example'],
    ['reg.example.test:8443', 'reg.example.test:8443'],
    ['example.com:443', 'example.com'],
    ['example.com:0443', 'example.com'],
    ['example.com:081', 'example.com:81'],
    ['example.com:65535', 'example.com:65535'],
    ['http:80', 'http:80'],
    ['Испытание.com', 'xn--80akhbyknj4f.com'],
    ['münchen.de', 'xn--mnchen-3ya.de'],
    ['mu\u0308nchen.de', 'xn--mnchen-3ya.de'],
    ['XN--Mnchen-3ya.de:8443', 'xn--mnchen-3ya.de:8443'],
    ['ΣΑΣ.gr', 'xn--mxa9ab.gr'],
    ['bücher.xn--tda.example', 'xn--bcher-kva.xn--tda.example'],
    [`${'a'.repeat(63)}.test`, `${'a'.repeat(63)}.test`],
  ])('gives one host one spelling, as terraform-svchost does (B15, B16): %s', (text, expected) => {
    expect(parseHostname(text)).toBe(expected)
  })

  it.each([
    '',
    '.',
    '..',
    '.example.com',
    'example.com.',
    'blah..blah',
    ':8443',
    'example.com:',
    'example.com:0',
    'example.com:00',
    'example.com:65536',
    'example.com:9999999',
    'example.com:boo',
    'example.com:80:80',
    'example.com:+80',
    'example.com:8０',
    'https://example.com',
    '127.0.0.1',
    '127.0.0.1:443',
    '127.1',
    '0x7f.1',
    '0x7F.1',
    '2130706433',
    '017700000001',
    '0x7f000001',
    '1.2.3.4.5',
    'foo.1',
    'foo.0x',
    '１２７.0.0.1',
    '127。0。0。1',
    'ü.1',
    '[::1]',
    '[::1]:8443',
    '::1',
    '::ffff:127.0.0.1',
    'fe80::1%eth0',
    'user@example.com',
    'user:secret@example.com',
    'example.com@evil.test',
    'a_b.example',
    'a b.example',
    'exa\tmple.com',
    'exa\nmple.com',
    'example.com\u0000',
    'example.com\u007f',
    'a\u0080b.com',
    'ex%61mple.com',
    'example.com/path',
    'example.com\\path',
    'example.com?q',
    'example.com#f',
    '*.example.com',
    'exam\u00adple.com',
    'bü\u00adcher.example',
    'a\u200db.com',
    'example。com',
    'example．com',
    'ｅxample.com',
    'ü１.de',
    'ﬀ.com',
    '\u212a.com',
    '-a.com',
    'a-.com',
    'ü-.com',
    'ab--cd.com',
    'xn--.com',
    'xn--a.com',
    'xn--wca.com',
    'xn--foo-.com',
    '\ud800.com',
    `${'a'.repeat(64)}.test`,
    `${'ü'.repeat(64)}.test`,
    `${'abcdefg.'.repeat(32)}test`,
    'a'.repeat(1000),
  ])('refuses what is no registry host as hostile (B16): %j', (text) => {
    expect(thrownBy(() => parseHostname(text)).code).toBe('HOSTILE_INPUT')
  })

  it('shows no password of a user-info in the error', () => {
    const error = thrownBy(() => parseHostname('user:s3cret@example.com'))
    expect(JSON.stringify([error.message, error.fields])).not.toContain('s3cret')
  })

  it('accepts every ordinary name, in any letter case, and prints what it parses back to itself', () => {
    const domain = fc.domain().filter((name) => !/(?:^|\.)..--/.test(name))
    fc.assert(
      fc.property(domain, fc.option(fc.integer({ min: 1, max: 65535 }), { nil: undefined }), (name, port) => {
        const text = port === undefined ? name : `${name}:${port}`
        const hostname = parseHostname(text.toUpperCase())
        expect(hostname).toBe(port === 443 ? name.toLowerCase() : text.toLowerCase())
        expect(parseHostname(hostname)).toBe(hostname)
        expect(splitHostname(hostname)).toEqual({ host: name.toLowerCase(), port: port === 443 ? undefined : port })
      }),
    )
  })

  it('gives only canonical values, which URLs keep as they are, whatever the input', () => {
    const character = fc.oneof(
      fc.constantFrom(...'abxn019-.:@[]%/\\ _'),
      fc.constantFrom(
        'ü',
        'Ü',
        'ß',
        'Σ',
        'ж',
        '日',
        '。',
        '．',
        '１',
        '\u00ad',
        '\u200d',
        '\u0308',
        'ﬀ',
        '\u212a',
        '☃',
        'א',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    )
    const text = fc.oneof(
      fc.string({ unit: character, maxLength: 12 }),
      fc.string({ unit: character, maxLength: 8 }).map((label) => `xn--${label}.example`),
      fc.array(fc.stringMatching(/^(0x)?[0-9a-f]{0,4}$/), { minLength: 1, maxLength: 5 }).map((l) => l.join('.')),
      fc.ipV4(),
      fc.ipV6(),
    )
    fc.assert(
      fc.property(text, (input) => {
        const hostname = outcome(() => parseHostname(input))
        if (isMirrorError(hostname)) return hostname.is('HOSTILE_INPUT')
        expect(hostname).toMatch(CANONICAL)
        expect(parseHostname(hostname)).toBe(hostname)
        expect(new URL(`https://${hostname}/`).host).toBe(hostname)
        expect(parseHostname(displayHostname(hostname))).toBe(hostname)
        return true
      }),
      { numRuns: 3000 },
    )
  })

  it('takes no longer for a megabyte', () => {
    for (const text of [
      'a'.repeat(1e6),
      'a.'.repeat(5e5),
      ':'.repeat(1e6),
      '@'.repeat(1e6),
      `xn--${'9'.repeat(1e6)}`,
    ]) {
      expect(cpuMs(() => thrownBy(() => parseHostname(text)))).toBeLessThan(2000)
    }
  })
})

describe('displayHostname', () => {
  it('shows Unicode and keeps the port', () => {
    expect(displayHostname(parseHostname('xn--bcher-kva.example:8443'))).toBe('bücher.example:8443')
    expect(displayHostname(parseHostname('registry.terraform.io'))).toBe('registry.terraform.io')
  })
})
