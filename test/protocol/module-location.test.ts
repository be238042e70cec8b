import { describe, expect, it } from 'vitest'
import { type ModuleDownloadAnswer, parseModuleLocation } from '../../src/protocol/module-location.ts'
import { formatModuleSource } from '../../src/protocol/module-source.ts'
import { thrownBy } from './only-mirror-errors.ts'

const ENDPOINT = new URL('https://reg.test/api/v1/modules/acme/net/aws/1.0.0/download')

function answer(parts: { status?: number; header?: string; body?: string; endpoint?: URL }): ModuleDownloadAnswer {
  const { status = 204, header, body = '', endpoint = ENDPOINT } = parts
  return { status, header, body: Buffer.from(body), endpoint }
}

const locate = (parts: Parameters<typeof answer>[0]) => formatModuleSource(parseModuleLocation(answer(parts)).source)

describe('parseModuleLocation', () => {
  it.each([
    ['204 with header', { header: 'https://h.test/x.zip' }],
    ['200 with header and empty body', { status: 200, header: 'https://h.test/x.zip' }],
    ['200 with header and an empty object', { status: 200, header: 'https://h.test/x.zip', body: '{}' }],
    ['200 with header and text', { status: 200, header: 'https://h.test/x.zip', body: 'see header' }],
    ['200 with header and empty location', { status: 200, header: 'https://h.test/x.zip', body: '{"location":""}' }],
    ['200 with location', { status: 200, body: '{"location":"https://h.test/x.zip"}' }],
    [
      '200 with both: JSON wins',
      { status: 200, header: 'https://no.test/', body: '{"location":"https://h.test/x.zip"}' },
    ],
  ])('reads every form of answer (B63): %s', (_, parts) => {
    expect(locate(parts)).toBe('https://h.test/x.zip')
  })

  it.each([
    ['/files/x.zip', 'https://reg.test/files/x.zip'],
    ['./x.zip', 'https://reg.test/api/v1/modules/acme/net/aws/1.0.0/x.zip'],
    ['../x.zip//sub?token=a%2Bb', 'https://reg.test/api/v1/modules/acme/net/aws/x.zip//sub?token=a%2Bb'],
    ['/a%2Fb.tgz//*?archive=tar.gz', 'https://reg.test/a%2Fb.tgz//*'],
    ['git::https://h.test/r.git//sub?ref=v1', 'git::https://h.test/r.git//sub?ref=v1'],
  ])('resolves %s against the URL that was asked, escapes kept once', (header, expected) => {
    expect(locate({ header })).toBe(expected)
  })

  it('keeps a user name of ours out of what it resolves', () => {
    const endpoint = new URL(ENDPOINT)
    endpoint.username = 'me'
    endpoint.password = 'secret'
    expect(locate({ header: './x.zip', endpoint })).not.toContain('secret')
  })

  it('tells whether the origin wants its token sent along (E12)', () => {
    const body = '{"location":"https://h.test/x.zip","use_registry_credentials":true}'
    expect(parseModuleLocation(answer({ status: 200, body })).withOriginToken).toBe(true)
    expect(parseModuleLocation(answer({ header: 'https://h.test/x.zip' })).withOriginToken).toBe(false)
  })

  it.each([{}, { header: '' }, { status: 200, body: '[]' }, { status: 200, body: '{"location":7}' }])(
    'without a location it is an answer that is wrong, not an absence: %j',
    (parts) => {
      const error = thrownBy(() => parseModuleLocation(answer(parts)))
      expect(error.code).toBe('UPSTREAM_INVALID')
      expect(error.message).toContain('no location')
    },
  )

  it.each(['files/x.tgz', 'hashicorp/consul/aws', 's3::https://s3.amazonaws.com/x.zip', 'hg::https://h.test/x'])(
    'refuses %s',
    (header) => {
      expect(thrownBy(() => parseModuleLocation(answer({ header }))).code).toBe('MODULE_SOURCE_REFUSED')
    },
  )
})
