import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { describeConfig } from '../../src/config/describe.ts'
import { loadConfig } from '../../src/config/load.ts'
import { UNAVAILABLE_KEYS } from '../../src/config/schema.ts'
import { MirrorError } from '../../src/errors.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terramirror-config-'))
})
beforeEach(() => rm(join(folder, 'config.yaml'), { force: true }))
afterAll(() => rm(folder, { recursive: true }))

interface Input {
  yaml?: string
  set?: string[]
  env?: NodeJS.ProcessEnv
  file?: string
}

async function load({ yaml, set = [], env = {}, file }: Input) {
  if (yaml !== undefined) await writeFile(join(folder, 'config.yaml'), yaml)
  return loadConfig({ set, cwd: folder, env, ...(file && { file }) })
}

async function problem(input: Input): Promise<string> {
  const error: unknown = await load(input).catch((reason: unknown) => reason)
  if (error instanceof MirrorError && error.is('CONFIGURATION')) return error.message
  throw new Error('expected a configuration error', { cause: error })
}

describe('defaults', () => {
  test('no file is needed', async () => {
    const defaults = { signatures: 'required', expiredKeys: 'accept' }
    const origin = { allowPrivateAddresses: false, allowHttp: false, services: {}, verification: defaults }
    expect(await load({})).toEqual({
      listen: { host: '127.0.0.1', port: 8443, tls: { auto: true, names: [] } },
      dataDir: join(folder, 'data'),
      stateDir: join(folder, 'data/state'),
      mode: 'online',
      admin: { listen: { host: '127.0.0.1', port: 8444 } },
      defaultOrigin: 'registry.terraform.io',
      origins: {
        'registry.terraform.io': origin,
        'registry.opentofu.org': { ...origin, verification: { signatures: 'whenListed', expiredKeys: 'accept' } },
      },
      hosts: {},
      upstream: { connectTimeout: 5000, idleTimeout: 60_000, minRate: 1000, retries: 3, concurrency: 32 },
      freshness: { versions: 300_000, discovery: 3_600_000, notFound: 30_000 },
      archives: { maxArchiveSize: 2_000_000_000, recheckAfter: 86_400_000, delivery: 'verified' },
      verification: defaults,
      metrics: { perProvider: false },
      log: { level: 'info', format: 'auto' },
    })
  })

  test('the default origin is one of the origins, in one spelling; the built-in one need not be served', async () => {
    const yaml = 'origins: { reg.example: {}, "*.corp.example": {} }'
    expect((await load({ yaml })).defaultOrigin).toBe('registry.terraform.io')
    expect((await load({ yaml: `${yaml}\ndefaultOrigin: REG.example:443` })).defaultOrigin).toBe('reg.example')
    expect((await load({ yaml: `${yaml}\ndefaultOrigin: a.corp.example` })).defaultOrigin).toBe('a.corp.example')
    for (const wrong of ['corp.example', 'elsewhere.example', 'reg.example:8443']) {
      expect(await problem({ yaml: `${yaml}\ndefaultOrigin: ${wrong}` })).toContain('defaultOrigin: expected one of')
    }
  })

  test('an empty file, an empty section and an empty origin mean their defaults', async () => {
    expect(await load({ yaml: '' })).toEqual(await load({ yaml: '# nothing\nlisten:\nupstream: {}\n' }))
    expect(Object.keys((await load({ yaml: 'origins:\n  a.example:\n' })).origins)).toEqual(['a.example'])
  })

  test('a list of origins replaces the default one, and registry.opentofu.org keeps whenListed in it', async () => {
    const yaml = `
verification: { signatures: required, expiredKeys: refuse }
origins:
  Registry.OpenTofu.org: { token: t }
  "*.corp.example": { verification: { signatures: whenListed } }
  reg.example.test:8443: {}
  a.example:443: {}
`
    const { origins } = await load({ yaml })
    expect(Object.entries(origins).map(([host, { verification }]) => [host, verification])).toEqual([
      ['registry.opentofu.org', { signatures: 'whenListed', expiredKeys: 'refuse' }],
      ['*.corp.example', { signatures: 'whenListed', expiredKeys: 'refuse' }],
      ['reg.example.test:8443', { signatures: 'required', expiredKeys: 'refuse' }],
      ['a.example', { signatures: 'required', expiredKeys: 'refuse' }],
    ])
    const strict = 'origins: { registry.opentofu.org: { verification: { signatures: required } } }'
    expect((await load({ yaml: strict })).origins['registry.opentofu.org']?.verification.signatures).toBe('required')
  })
})

describe('admin', () => {
  test('is on loopback, at port 8444, or at any free one as the public port is', async () => {
    expect((await load({ yaml: '' })).admin).toEqual({ listen: { host: '127.0.0.1', port: 8444 } })
    expect((await load({ yaml: 'admin:' })).admin).toEqual({ listen: { host: '127.0.0.1', port: 8444 } })
    expect((await load({ yaml: 'listen: { port: 0 }' })).admin).toEqual({ listen: { host: '127.0.0.1', port: 0 } })
    const given = 'listen: { port: 0 }\nadmin: { listen: { port: 9444 } }'
    expect((await load({ yaml: given })).admin).toMatchObject({ listen: { port: 9444 } })
  })

  test('can be a socket below the folder of the file, or off', async () => {
    const { admin } = await load({ yaml: 'admin: { listen: { socket: run/admin.sock } }\nlisten: { tls: off }' })
    expect(admin).toEqual({ listen: { socket: join(folder, 'run', 'admin.sock') } })
    expect((await load({ yaml: 'admin: off' })).admin).toBe('off')
  })

  test.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('without TLS it may listen on %s', async (host) => {
    const { admin } = await load({ yaml: `listen: { tls: off }\nadmin: { listen: { host: "${host}" } }` })
    expect(admin).toMatchObject({ listen: { host } })
  })

  test('takes its token from TERRAMIRROR_ADMIN_TOKEN where the file has none', async () => {
    const env = { TERRAMIRROR_ADMIN_TOKEN: 'of-the-environment' }
    expect((await load({ yaml: '', env })).admin).toMatchObject({ token: 'of-the-environment' })
    expect((await load({ yaml: 'admin: { token: of-the-file }', env })).admin).toMatchObject({ token: 'of-the-file' })
    expect((await load({ yaml: 'admin: off', env })).admin).toBe('off')
    expect((await load({ yaml: '', env: { TERRAMIRROR_ADMIN_TOKEN: '' } })).admin).not.toHaveProperty('token')
    const message = await problem({ yaml: '', env: { TERRAMIRROR_ADMIN_TOKEN: 'se cret' } })
    expect(message).toMatch(/^environment variable TERRAMIRROR_ADMIN_TOKEN: expected a token of printable ASCII/)
    expect(message).not.toContain('se cret')
  })
})

describe('paths', () => {
  test('relative paths start at the folder of the file', async () => {
    await writeFile(join(folder, 'other.yaml'), 'dataDir: d\nupstream: { caFile: ../ca.pem }')
    const config = await loadConfig({ file: join(folder, 'other.yaml'), set: ['stateDir=s'], cwd: '/', env: {} })
    expect(config).toMatchObject({ dataDir: join(folder, 'd'), stateDir: join(folder, 's') })
    expect(config.upstream.caFile).toBe(join(folder, '..', 'ca.pem'))
  })

  test('a file that is named must exist', async () => {
    expect(await problem({ file: 'absent.yaml' })).toBe('configuration file absent.yaml cannot be read (ENOENT)')
  })
})

describe('unknown keys', () => {
  test('are named with their place and the nearest key that exists', async () => {
    const yaml = 'origins:\n  a.example:\n    tokn: x\nlisten: { prt: 1, tls: { auto: true, nmaes: [] } }\nzzzzzz: 1\n'
    expect((await problem({ yaml })).split('\n')).toEqual([
      'config.yaml:4:38: unknown key listen.tls.nmaes; did you mean "names"?',
      'config.yaml:4:11: unknown key listen.prt; did you mean "port"?',
      'config.yaml:3:5: unknown key origins["a.example"].tokn; did you mean "token"?',
      'config.yaml:5:1: unknown key zzzzzz',
    ])
  })

  test('of a later version are told as such', async () => {
    for (const pattern of UNAVAILABLE_KEYS) {
      const path = pattern.split('.').map((part) => (part === '*' ? 'a.example' : part))
      const yaml = JSON.stringify(path.reduceRight<unknown>((value, key) => ({ [key]: value }), {}))
      const name = pattern.replace('*.', '["a.example"].').replace('.[', '[')
      expect(await problem({ yaml })).toMatch(/^config\.yaml:1:\d+: key \S+ is not available in this version$/)
      expect(await problem({ yaml })).toContain(`key ${name} `)
    }
  })

  test('a prototype key is an unknown key', async () => {
    expect(await problem({ yaml: '__proto__: { mode: sealed }' })).toContain('unknown key __proto__')
    expect(await problem({ yaml: 'listen: { __proto__: {}, toString: 1 }' })).toContain('unknown key listen.toString')
  })
})

describe('wrong values', () => {
  test.each([
    ['listen: { port: 70000 }', 'listen.port: expected a whole number from 0 to 65535'],
    ['listen: { port: abc }', 'listen.port: expected a whole number from 0 to 65535'],
    ['listen: { host: "a:1" }', 'listen.host: expected a host name or an IP address, without a port'],
    [
      'listen: { tls: on }',
      'listen.tls: expected auto, off, { auto: true, names: [NAME] } or { certFile: FILE, keyFile',
    ],
    ['listen: { tls: { certFile: a } }', 'listen.tls.keyFile: this key is required here'],
    ['listen: { tls: { auto: true, names: [a_b] } }', 'listen.tls.names[0]: expected a host name'],
    ['publicUrl: http://mirror.example/', 'publicUrl: expected an absolute https URL'],
    ['origins:', 'origins: no registry is named, so nothing would be served'],
    ['origins: {}', 'origins: no registry is named, so nothing would be served'],
    ['origins: { "https://registry.terraform.io/": {} }', 'write the host alone, without https://'],
    ['publicUrl: mirror.example', 'publicUrl: expected an absolute https URL'],
    ['publicUrl: https://u:p@mirror.example', 'publicUrl: expected an absolute https URL without user'],
    [`publicUrl: 'https://a"b/'`, 'publicUrl: expected an absolute https URL whose host is a name or an address'],
    ['publicUrl: https://a$b/', 'publicUrl: expected an absolute https URL whose host is a name or an address'],
    ['mode: offline', 'mode: expected online or sealed'],
    ['admin: on', 'admin: expected off or { listen: …, token: TOKEN }'],
    ['admin: { listen: { socket: a, port: 1 } }', 'unknown key admin.listen.'],
    ['admin: { lisen: {} }', 'unknown key admin.lisen; did you mean "listen"?'],
    ['admin: { token: "two words" }', 'admin.token: expected a token of printable ASCII characters without spaces'],
    ['listen: { port: 8444 }', 'admin.listen.port: the same as listen.port'],
    [
      'listen: { tls: off }\nadmin: { listen: { host: 0.0.0.0 } }',
      'admin.listen.host: expected 127.0.0.1, ::1 or localhost',
    ],
    [
      'freshness: { notFound: 2m }',
      'freshness.notFound: expected a time such as 500ms, 30s, 5m, 24h or 7d, at most 60s',
    ],
    ['freshness: { versions: 5 }', 'freshness.versions: expected a time'],
    ['upstream: { idleTimeout: 0s }', 'upstream.idleTimeout: expected a time such as 500ms, 30s, 5m, 24h or 7d, more'],
    ['archives: { maxArchiveSize: 2gb }', 'archives.maxArchiveSize: expected a size such as'],
    ['origins: { 10.0.0.1: {} }', 'origins["10.0.0.1"]: not a host name'],
    [
      'origins: { "*.a.example:8443": {} }',
      'origins["*.a.example:8443"]: a pattern such as *.corp.example takes no port',
    ],
    ['origins: { A.example: {}, a.example: {} }', 'origins["a.example"]: the same host as A.example'],
    ['origins: { a.example: { address: 10.1.2.3 } }', 'origins["a.example"].address: expected \'host:port\''],
    ['origins: { a.example: { services: { providers.v1: "http://b/" } } }', 'expected an https URL (allowHttp'],
    ['hosts: { "*.a.example": {} }', 'hosts["*.a.example"]: not a host name'],
    ['hosts: { a.example: { token: a, basic: "b:c" } }', 'hosts["a.example"]: token and basic exclude each other'],
    ['origins: { a.example: { allowHttp: 1 } }', 'allowHttp: expected true or false'],
    ['- 1', 'config.yaml: expected a map of keys at the top'],
    ['origins: []', 'origins: expected record, received array'],
    ['mode: online\nmode: sealed', 'config.yaml:2:1: not valid YAML: duplicate key'],
    ['a: [1', 'not valid YAML'],
  ])('%s', async (yaml, message) => {
    expect(await problem({ yaml })).toContain(message)
  })

  test('good ones in every spelling', async () => {
    const yaml = `
listen: { host: "[::1]", port: "9443", tls: { certFile: a, keyFile: b } }
publicUrl: https://mirror.example/base
origins:
  a.example:
    address: "[fd00::1]:8443"
    services: { providers.v1: https://b.example/v1 }
    allowedHosts: ["*.a.example", 10.0.0.1:8443, "[FD00::0:1]"]
`
    expect(await load({ yaml })).toMatchObject({
      listen: { host: '::1', port: 9443, tls: { certFile: join(folder, 'a'), keyFile: join(folder, 'b') } },
      publicUrl: 'https://mirror.example/base/',
      origins: {
        'a.example': {
          services: { 'providers.v1': 'https://b.example/v1/' },
          allowedHosts: ['*.a.example', '10.0.0.1:8443', '[fd00::1]'],
        },
      },
    })
  })
})

describe('secrets', () => {
  const secret = 'S3cr3t-Value'
  test.each([
    `origins: { a.example: { token: [${secret}] } }`,
    `origins: { a.example: { token: "${secret} x" } }`,
    `origins: { a.example: ${secret} }`,
    `origins: { a.example: { token: *${secret} } }`,
    `origins: { a.example: { token: !${secret} x } }`,
    `origins: { a.example: { token: "${secret} } }`,
    `origins:\n  a.example:\n    token: ${secret}: x\n`,
    `origins:\n  a.example:\n    token: "x" "${secret}"\n`,
    `origins:\n  a.example:\n    token: @${secret}\n`,
    `hosts: { a.example: { basic: ${secret} } }`,
    `upstream: { proxy: "ftp://u:${secret}@proxy" }`,
    `upstream: { retries: ${secret} }`,
    `freshness: { versions: ${secret} }`,
    `publicUrl: ${secret}`,
    `mode: ${secret}`,
    `listen: { tls: ${secret} }`,
    `origins: { a.example: { allowedHosts: ["${secret}!"] } }`,
  ])('a value never appears in the error: %s', async (yaml) => {
    expect(await problem({ yaml })).not.toContain(secret)
  })

  test('nor does that of --set or of the proxy variable', async () => {
    expect(await problem({ set: [`mode=${secret}`] })).toBe('--set: mode: expected online or sealed')
    expect(await problem({ set: [`listen.tls={${secret}`] })).toBe('--set listen.tls: the value is not valid YAML')
    expect(await problem({ env: { HTTPS_PROXY: `socks://u:${secret}@p` } })).toBe(
      'environment variable HTTPS_PROXY: expected an http or https URL of a proxy',
    )
  })

  test('are masked in the description for the log', async () => {
    const yaml = `
origins: { a.example: { token: ${secret} } }
hosts: { b.example: { token: ${secret} }, c.example: { basic: "user:${secret}" } }
upstream: { proxy: "http://user:${secret}@proxy.example:3128" }
`
    const config = await load({ yaml })
    const description = describeConfig(config)
    expect(JSON.stringify(config)).toContain(secret)
    expect(JSON.stringify(description)).not.toContain(secret)
    expect(description).toMatchObject({
      origins: { 'a.example': { token: '[secret]' } },
      upstream: { proxy: 'http://[secret]@proxy.example:3128/' },
    })
  })
})

describe('placeholders', () => {
  test('take variables and files, inside text and where numbers stand', async () => {
    await writeFile(join(folder, 'token'), 'from-file\n')
    const yaml = `
listen: { port: "\${env:PORT}" }
origins:
  a.example: { token: "\${file:./token}" }
  b.example: { token: "a-\${env:A}-\${env:A}-$\${env:A}" }
`
    const config = await load({ yaml, env: { PORT: '9443', A: `\${env:PORT}` } })
    expect(config.listen.port).toBe(9443)
    expect(config.origins['a.example']?.token).toBe('from-file')
    expect(config.origins['b.example']?.token).toBe(`a-\${env:PORT}-\${env:PORT}-\${env:A}`)
  })

  test('without a value are errors that name key and place', async () => {
    const yaml = `origins:\n  a.example:\n    token: \${env:ABSENT}\ndataDir: \${file:absent}\nmode: \${x}\nstateDir: a\${env:b\n`
    expect((await problem({ yaml })).split('\n').sort()).toEqual([
      'config.yaml:3:5: origins["a.example"].token: environment variable ABSENT is not set',
      `config.yaml:4:1: dataDir: file ${join(folder, 'absent')} cannot be read (ENOENT)`,
      `config.yaml:5:1: mode: unknown placeholder; expected \${env:NAME} or \${file:PATH}, or $\${ for the characters \${`,
      'config.yaml:6:1: stateDir: a placeholder is not closed; write $${ for the characters ${',
    ])
  })
})

describe('--set', () => {
  test('wins over the file, with text as it is and other values as YAML', async () => {
    const set = ['listen.port=9443', 'origins.a.example.token=123', 'listen.tls={auto: true, names: [a.example]}']
    const config = await load({ yaml: 'listen: { port: 1 }\norigins: { a.example: {} }', set })
    expect(config.listen).toMatchObject({ port: 9443, tls: { auto: true, names: ['a.example'] } })
    expect(config.origins['a.example']?.token).toBe('123')
  })

  test('finds hosts with dots without quotes: known ones first, then the longest', async () => {
    const set = [
      'origins.token.example.token=a',
      'origins.reg.example:8443.services.providers.v1=https://b.example/',
      'origins.reg.example.allowHttp=true',
      'origins.new.example={}',
    ]
    const { origins } = await load({ yaml: 'origins: { reg.example: {} }', set })
    expect(Object.keys(origins).sort()).toEqual(['new.example', 'reg.example', 'reg.example:8443', 'token.example'])
    expect(origins).toMatchObject({
      'token.example': { token: 'a' },
      'reg.example:8443': { services: { 'providers.v1': 'https://b.example/' } },
      'reg.example': { allowHttp: true },
    })
  })

  test('of an unknown key names the nearest one', async () => {
    expect(await problem({ set: ['listen.prt=1'] })).toBe('--set: unknown key listen.prt; did you mean "port"?')
    expect(await problem({ set: ['auth.x=1'] })).toContain('--set: ')
    expect(await problem({ set: ['policy=x'] })).toContain('is not available in this version')
    expect(await problem({ set: ['origins.a.example.tokn=x'] })).toBe(
      '--set: unknown key origins["a.example"].tokn; did you mean "token"?',
    )
    expect(await problem({ set: ['listen.port'] })).toContain('expected KEY=VALUE')
    expect(await problem({ set: ['listen.port=x'] })).toBe(
      '--set: listen.port: expected a whole number from 0 to 65535',
    )
  })
})

describe('the proxy', () => {
  test('comes from the environment unless the configuration names one, or off', async () => {
    const env = { HTTPS_PROXY: 'http://a.example:3128', HTTP_PROXY: 'http://b.example', no_proxy: 'c.example' }
    expect((await load({ env })).upstream).toMatchObject({ proxy: 'http://a.example:3128', noProxy: 'c.example' })
    expect((await load({ env: { https_proxy: 'd.example:8080' } })).upstream.proxy).toBe('http://d.example:8080')
    expect((await load({ env: { HTTPS_PROXY: '' } })).upstream).not.toHaveProperty('proxy')
    const own = await load({ env, yaml: 'upstream: { proxy: "https://e.example" }' })
    expect(own.upstream).toMatchObject({ proxy: 'https://e.example' })
    expect(own.upstream).not.toHaveProperty('noProxy')
    expect((await load({ env, yaml: 'upstream: { proxy: off }' })).upstream).not.toHaveProperty('proxy')
  })
})

test('any YAML gives a configuration or a configuration error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (yaml) => {
      const outcome: unknown = await load({ yaml }).catch((error: unknown) => error)
      expect(outcome instanceof Error ? outcome : undefined).toSatisfy(
        (error: unknown) => error === undefined || (error instanceof MirrorError && error.code === 'CONFIGURATION'),
      )
    }),
    { numRuns: 300 },
  )
})
