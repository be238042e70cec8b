import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { parseModuleLocation } from '../../src/protocol/module-location.ts'
import { formatModuleSource, type ModuleSource, parseModuleSource } from '../../src/protocol/module-source.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'
import { describeVectors, readJsonVector } from './vectors.ts'

/** A source in few words, to compare with. */
function show(source: ModuleSource): string {
  switch (source.kind) {
    case 'local':
      return `local ${source.path}`
    case 'registry':
      return `registry ${formatModuleSource(source)}`
    case 'git':
      return ['git', source.url.href, `ref=${source.ref ?? ''}`, `in=${source.subfolder}`].join(' ')
    case 'http-archive': {
      const { checksum } = source
      const digest = checksum === undefined ? [] : [`${checksum.algorithm}=${checksum.hex}`]
      return ['archive', source.url.href, source.format ?? '?', `in=${source.subfolder}`, ...digest].join(' ')
    }
  }
}

const parse = (text: string): string => show(parseModuleSource(text))
const HEX = 'a'.repeat(64)

describe('parseModuleSource', () => {
  it.each([
    ['git::https://h.test/a/b.git//sub/dir?ref=v1.2.0&depth=1', 'git https://h.test/a/b.git ref=v1.2.0 in=sub/dir'],
    ['git::https://h.test/a/b?ref=v1.0.0%2Bbuild.1', 'git https://h.test/a/b ref=v1.0.0+build.1 in='],
    ['git::https://h.test/a/b?ref=v1.0.0+build.1', 'git https://h.test/a/b ref=v1.0.0+build.1 in='],
    ['git::https://h.test/a/b', 'git https://h.test/a/b ref= in='],
    ['git::https://org@dev.test/org/_git/repo?ref=main', 'git https://dev.test/org/_git/repo ref=main in='],
    ['git::ssh://git@h.test:2222/a/b.git//x?ref=v1', 'git ssh://git@h.test:2222/a/b.git ref=v1 in=x'],
    ['git@h.test:a/b.git?ref=tags/0.4.0//some/dir', 'git ssh://git@h.test/a/b.git ref=tags/0.4.0 in=some/dir'],
    ['github.com/a/b?ref=tags/0.2.2', 'git https://github.com/a/b.git ref=tags/0.2.2 in='],
    ['github.com/a/b/c/d', 'git https://github.com/a/b.git ref= in=c/d'],
    ['github.com/a/b/c//d?ref=v1', 'git https://github.com/a/b.git ref=v1 in=c/d'],
    ['bitbucket.org/a/b.git//c', 'git https://bitbucket.org/a/b.git ref= in=c'],
    ['https://h.test/x.tgz', 'archive https://h.test/x.tgz tar.gz in='],
    ['https://h.test/x.tar.gz//*?archive=tar.gz', 'archive https://h.test/x.tar.gz tar.gz in=*'],
    [
      'https://h.test/tarball/v1//*/modules/x?archive=tar.gz&token=a%20b',
      'archive https://h.test/tarball/v1?token=a%20b tar.gz in=*/modules/x',
    ],
    ['https://h.test/x?archive=zip&b=2&a=1', 'archive https://h.test/x?b=2&a=1 zip in='],
    ['https://h.test/a%2Fb.zip', 'archive https://h.test/a%2Fb.zip zip in='],
    ['https://h.test/download/module', 'archive https://h.test/download/module ? in='],
    [`https://h.test/x.zip?checksum=sha256:${HEX}`, `archive https://h.test/x.zip zip in= sha256=${HEX}`],
    [`https://h.test/x.zip?checksum=${HEX.toUpperCase()}`, `archive https://h.test/x.zip zip in= sha256=${HEX}`],
    ['hashicorp/consul/aws//modules/x', 'registry registry.terraform.io/hashicorp/consul/aws//modules/x'],
    ['registry.example.com/org/name/provider//sub', 'registry registry.example.com/org/name/provider//sub'],
    ['./foo//sub', 'local ./foo//sub'],
    ['..', 'local ..'],
  ])('reads %s', (text, expected) => {
    expect(parse(text)).toBe(expected)
  })

  it.each([
    ['s3::https://s3.amazonaws.com/x.zip', 's3'],
    ['bucket.s3-eu-west-1.amazonaws.com/foo/bar.baz', 's3'],
    ['gcs::https://www.googleapis.com/storage/v1/x.zip', 'gcs'],
    ['hg::https://h.test/x', 'hg'],
    ['oci://ghcr.io/acme/x?tag=1', 'oci'],
    ['tfr:///a/b/c?version=1', 'tfr'],
    ['file:///opt/module', 'file'],
    ['git://h.test/x', 'git'],
    ['git::ftp://h.test/x', 'git::ftp'],
    ['git::https://h.test/x?sshkey=c2VjcmV0', 'git'],
    [`git::https://h.test/x?checksum=${HEX}`, 'git'],
    ['git::https://h.test/x?ref=--upload-pack=touch', 'git'],
    ['git::https://h.test/x?ref=a..b', 'git'],
    ['git::https://h.test/x//../../etc?ref=v1', 'git'],
    ['git::https://h.test/x//*?ref=v1', 'git'],
    ['git::ssh://-oProxyCommand=touch/x', 'git'],
    ['git::https://user:secret@h.test/x', 'git'],
    ['https://user:secret@h.test/x.zip', 'https'],
    ['https://h.test/x.zip?archive=false', 'https'],
    ['https://h.test/x.zip?checksum=file:https://h.test/sums', 'https'],
    ['https://h.test/x.zip//a b', 'https'],
    ['https:h.test/x.zip', ''],
    ['files/x.tgz', ''],
    ['', ''],
  ])('refuses %s and names the scheme, without repeating what may be secret', (text, scheme) => {
    const error = thrownBy(() => parseModuleSource(text))
    expect(error.is('MODULE_SOURCE_REFUSED')).toBe(true)
    expect(error.fields).toMatchObject({ scheme })
    expect(error.message).not.toMatch(/secret|c2VjcmV0/)
  })

  const part = fc.stringMatching(/^[a-z][a-z0-9._-]{0,8}$/)
  const anySource = fc.oneof(
    fc.string(),
    fc
      .record({
        getter: fc.constantFrom('', 'git::', 'https::', 's3::', 'GIT::'),
        scheme: fc.constantFrom('https://', 'ssh://git@', 'http://', '', 'git@'),
        host: fc.constantFrom('h.test', 'h.test:8443', 'github.com', 'bitbucket.org'),
        path: fc.array(part, { maxLength: 4 }),
        mark: fc.constantFrom('', '//', '//*/', '///'),
        folder: fc.array(part, { maxLength: 2 }),
        query: fc.array(
          fc.constantFrom(
            'ref=v1',
            'ref=a/b//c',
            'archive=zip',
            'archive=tgz',
            `checksum=${HEX}`,
            'x',
            'y=%20',
            'depth=1',
          ),
          { maxLength: 3 },
        ),
      })
      .map(({ getter, scheme, host, path, mark, folder, query }) =>
        [
          getter,
          scheme,
          [host, ...path].join('/'),
          mark,
          folder.join('/'),
          query.length ? '?' : '',
          query.join('&'),
        ].join(''),
      ),
  )

  it('parse, print, parse is the identity', () => {
    fc.assert(
      fc.property(anySource, (text) => {
        const first = outcome(() => parseModuleSource(text))
        if (isMirrorError(first)) return
        expect(parse(formatModuleSource(first))).toBe(show(first))
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes linear time, and throws nothing but our own errors', () => {
    for (const text of ['a/'.repeat(500_000), 'git::'.repeat(200_000), '?&'.repeat(500_000), '//'.repeat(500_000)]) {
      expect(cpuMs(() => outcome(() => parseModuleSource(text)))).toBeLessThan(500)
    }
  })
})

describeVectors('every real source string', () => {
  interface Forms {
    readonly x_terraform_get_values: readonly { readonly value: string; readonly kind: string }[]
    readonly module_source_strings: readonly { readonly value: string }[]
    readonly go_getter_detection: readonly { readonly given: string; readonly expands_to: string }[]
  }
  const forms = readJsonVector('responses/module-source-forms.json') as Forms

  it('is what go-getter makes of it', () => {
    for (const { given, expands_to } of forms.go_getter_detection) {
      const [a, b] = [given, expands_to].map((text) => outcome(() => parse(text)))
      if (isMirrorError(a) && isMirrorError(b)) expect(a.fields).toEqual(b.fields)
      else expect(a).toBe(b)
    }
    expect(forms.go_getter_detection).toHaveLength(7)
  })

  /** What each kind that the data set names must come out as. */
  const KINDS: readonly (readonly [named: RegExp, expected: RegExp])[] = [
    [/^https-tarball-glob-subdir/, /^archive https:\S+ tar\.gz in=\*$/],
    [/^git-https-commit/, /^git https:\S+ ref=[0-9a-f]{40} in=$/],
    [/^git-https-tag/, /^git https:\S+ ref=v\d\S+ in=$/],
    [/^root-relative-zip/, /^archive https:\/\/reg\.test\/\S+\.zip zip in=$/],
    [/^root-relative/, /^archive https:\/\/reg\.test\/\S+ tar\.gz in=$/],
    [/^dot-relative-archive-query/, /^archive https:\/\/reg\.test\/v1\/modules\/a\/b\/c\/1\.0\.0\/archive zip in=$/],
    [/^https-zip/, /^archive https:\S+ zip in=$/],
    [/^https-presigned/, /^archive https:\S+X-Amz-Algorithm=\S+ tar\.gz in=$/],
    [/^https-t/, /^archive https:\S+ tar\.gz in=$/],
    [/^s3/, /^refused s3$/],
    [/^file/, /^refused file$/],
    [/^malformed/, /^refused git$/],
  ]

  it('is what its kind says, as a location of a registry', () => {
    const endpoint = new URL('https://reg.test/v1/modules/a/b/c/1.0.0/download')
    for (const { value, kind } of forms.x_terraform_get_values) {
      const answer = { status: 204, header: value, body: Buffer.alloc(0), endpoint }
      const result = outcome(() => show(parseModuleLocation(answer).source))
      const verdict = isMirrorError(result)
        ? `refused ${'scheme' in result.fields ? result.fields.scheme : '?'}`
        : result
      expect(verdict, value).toMatch(KINDS.find(([named]) => named.test(kind))?.[1] ?? /no rule/)
    }
    expect(forms.x_terraform_get_values).toHaveLength(26)
  })

  it('is counted: so many of each kind, and the refused ones by their scheme', () => {
    const tally: Record<string, number> = {}
    for (const { value } of forms.module_source_strings) {
      const result = outcome(() => parseModuleSource(value))
      const kind = isMirrorError(result)
        ? `refused ${'scheme' in result.fields ? result.fields.scheme : '?'}`
        : result.kind
      tally[kind] = (tally[kind] ?? 0) + 1
    }
    expect(tally).toEqual({
      git: 21,
      'http-archive': 4,
      registry: 3,
      local: 2,
      'refused s3': 4,
      'refused gcs': 1,
      'refused oci': 3,
      'refused tfr': 2,
      'refused ': 1,
    })
  })
})
