import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { addDoctor } from '../../src/cli/doctor.ts'
import { examine } from '../../src/doctor/examination.ts'
import { formatClientConfiguration } from '../../src/protocol/client-configuration.ts'
import { runCommand } from '../cli/run-command.ts'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import { createTestAuthority } from '../tls-fixture.ts'
import { startProxy } from '../upstream/proxy-fixture.ts'
import { createPatient, Findings, freePort, type More } from './patient.ts'

const HOST = 'registry.example.test'

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin({ hosts: [HOST] })
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

/** Examines a mirror that does not run, with this configuration. */
async function examineWith(more: More, prepare?: (folder: string) => Promise<unknown>): Promise<Findings> {
  await using patient = await createPatient(origin, more)
  await prepare?.(patient.folder)
  return await patient.examine()
}

describe('a mirror that is well', () => {
  test('and does not run yet has no complaint', async () => {
    const findings = await examineWith({})
    expect(findings.complaints).toEqual([])
    expect(findings.about('ok origin')).toMatch(/signed by key [0-9A-F]{16}/i)
    expect(findings.about('ok clock')).toContain('agrees with the origins')
    expect(findings.about('ok lock')).toContain('does not run')
  })

  describe('and runs', () => {
    let mirror: TestMirror
    let env: Record<string, string>
    let port: number

    beforeAll(async () => {
      port = await freePort()
      const config = {
        listen: { port },
        admin: { listen: { port: await freePort() } },
        archives: { maxSize: '100MB' },
        defaultOrigin: HOST,
        publicUrl: `https://localhost:${port}/`,
      }
      mirror = await startMirror({ origin, config })
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
      env = { SSL_CERT_FILE: join(mirror.dataDir, 'state', 'tls', 'ca-bundle.pem') }
    })
    afterAll(() => mirror[Symbol.asyncDispose]())

    const examineRunning = async (clientFile?: string, more: Record<string, unknown> = {}) => {
      const given = clientFile === undefined ? {} : { clientFile }
      const file = join(mirror.folder, 'config.yaml')
      const usual = { file, set: [], cwd: mirror.folder, env, isOffline: false, providers: [] }
      return new Findings(await examine({ ...usual, ...given, ...more }))
    }
    const writeClient = async (text: string) => {
      const file = join(mirror.folder, 'terraformrc')
      await writeFile(file, text)
      return file
    }

    test('has no complaint, nor has the client configuration that is printed for it', async () => {
      const baseUrl = `https://localhost:${port}/`
      const made = { client: 'terraform', door: 'both', direct: false, baseUrl, origins: [HOST] } as const
      const findings = await examineRunning(await writeClient(formatClientConfiguration(made)))
      expect(findings.complaints).toEqual([])
      const wells = ['configuration', 'secret files', 'data folder', 'state folder', 'space', 'lock: the mirror runs']
      const more = [
        'listener',
        'certificate',
        'served certificate',
        'admin API: it answers',
        `origin ${HOST}: connection`,
        'base URL: archives',
      ]
      const last = ['base URL: documents', 'base URL: service discovery', 'client file']
      for (const name of [...wells, ...more, ...last]) expect(findings.about(`ok ${name}`), name).not.toBe('')
    })

    test('is the same for the command, whose exit code is 0', async () => {
      const file = join(mirror.folder, 'config.yaml')
      const run = await runCommand(['doctor', '--config', file, '--offline', '--json'], env)
      expect([run.code, JSON.parse(run.stdout).well]).toEqual([0, true])
      const text = await runCommand(['doctor', '--config', file, '--offline'], env)
      expect(text.stdout).toContain('ok       lock: the mirror runs: process')
      expect(text.stdout).toMatch(/all is well\n$/)
    })

    test('but whose authority the client does not trust: how to trust it', async () => {
      const findings = await examineRunning(undefined, { env: {} })
      expect(findings.about('warning base URL: certificate')).toMatch(/private CA .* is not trusted .*SSL_CERT_FILE=/)
    })

    test('but SSL_CERT_FILE names nothing: said so', async () => {
      const findings = await examineRunning(undefined, { env: { SSL_CERT_FILE: '/nowhere/ca.pem' } })
      expect(findings.about('problem base URL: certificate')).toContain('/nowhere/ca.pem, which cannot be read')
    })

    test('but shows another certificate than its file has: said so', async () => {
      const file = join(mirror.dataDir, 'state', 'tls', 'server.pem')
      await copyFile(file, `${file}.kept`)
      const { cert } = await (await createTestAuthority()).issue(['localhost', '127.0.0.1', '::1'])
      await writeFile(file, cert)
      const findings = await examineRunning()
      await copyFile(`${file}.kept`, file)
      await rm(`${file}.kept`)
      expect(findings.about('problem served certificate')).toMatch(
        /shows another certificate than .*server\.pem.*start it again/,
      )
    })

    test('but whose admin API does not take the token that its file holds', async () => {
      const file = join(mirror.dataDir, 'state', 'admin-token')
      const kept = await readFile(file, 'utf8')
      await writeFile(file, 'another-token')
      const findings = await examineRunning()
      await writeFile(file, kept)
      expect(findings.about('problem admin API')).toMatch(/does not take the token of .*admin-token.*start it again/)
      expect(findings.lines.join()).not.toContain('another-token')
    })

    test('but whose port was changed in the configuration since: does not answer there', async () => {
      const findings = await examineRunning(undefined, { set: [`listen.port=${await freePort()}`] })
      expect(findings.about('problem listener')).toMatch(/the mirror runs, but .*ECONNREFUSED.*start it again/)
    })

    test.each([
      [
        'plain http',
        'provider_installation {\n  network_mirror {\n    url = "http://localhost:PORT/providers/"\n  }\n}',
        /terraformrc:3: clients refuse a network mirror at http:.*https URL/,
      ],
      [
        'no slash at the end',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/providers"\n  }\n}',
        /:3: the url does not end with a slash, so clients drop "providers".*Write https:\/\/localhost:\d+\/providers\/$/m,
      ],
      [
        'the mirror itself, not the network mirror',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/"\n  }\n}',
        /:3: the url ends with \/, and the network mirror is below providers\//,
      ],
      [
        'a bare direct',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n  }\n  direct {}\n}',
        /:5: direct does not exclude registry\.example\.test.*exclude = \["registry\.example\.test\/\*\/\*"\]/,
      ],
      [
        'two provider_installation blocks',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n  }\n}\nprovider_installation {\n}',
        /:6: a second provider_installation block/,
      ],
      [
        'an include list without direct',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n    include = ["hashicorp/*"]\n  }\n}',
        /:2: network_mirror is limited to hashicorp\/\*.*nowhere/,
      ],
      [
        'a filesystem mirror before it',
        'provider_installation {\n  filesystem_mirror {\n    path = "/usr/share/terraform"\n  }\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n  }\n}',
        /:2: filesystem_mirror comes first.*include list/,
      ],
      [
        'dev_overrides',
        'provider_installation {\n  dev_overrides {\n    "acme/widget" = "/home/me/go/bin"\n  }\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n  }\n}',
        /:2: dev_overrides takes acme\/widget from .*without version, hash or mirror/,
      ],
      [
        'a plugin cache that is not there',
        'plugin_cache_dir = "/nowhere/cache"\nprovider_installation {\n  network_mirror {\n    url = "https://localhost:PORT/providers/"\n  }\n}',
        /:1: the plugin cache folder \/nowhere\/cache does not exist.*Make the folder/,
      ],
      [
        'a host block without modules.v1',
        'host "registry.example.test" {\n  services = {\n    "providers.v1" = "https://localhost:PORT/v1/providers/registry.example.test/"\n  }\n}',
        /:1: the host block of registry\.example\.test lacks modules\.v1.*Add "modules\.v1"/,
      ],
      [
        'a host block that leads to another registry',
        'host "registry.terraform.io" {\n  services = {\n    "providers.v1" = "https://localhost:PORT/v1/providers/registry.example.test/"\n    "modules.v1" = "https://localhost:PORT/v1/modules/registry.terraform.io/"\n  }\n}',
        /:1: providers\.v1 of registry\.terraform\.io leads to registry\.example\.test/,
      ],
      [
        'credentials without the port',
        'credentials "localhost" {\n  token = "x"\n}\nhost "registry.example.test" {\n  services = {\n    "providers.v1" = "https://localhost:PORT/v1/providers/registry.example.test/"\n    "modules.v1" = "https://localhost:PORT/v1/modules/registry.example.test/"\n  }\n}',
        /:1: the credentials of localhost are not sent to localhost:\d+: the label lacks the port/,
      ],
      ['no syntax', 'provider_installation {\n', /:1: Unclosed configuration block.*clients stop at it/],
      ['nothing about a mirror', 'disable_checkpoint = true\n', /leads to no mirror.*client-config/],
      [
        'another mirror',
        'provider_installation {\n  network_mirror {\n    url = "https://localhost:9/providers/"\n  }\n}',
        /client file: localhost:9: nothing listens at localhost port 9/,
      ],
    ])('a client configuration with %s', async (_, text, expected) => {
      const file = await writeClient(text.replaceAll('PORT', String(port)))
      const findings = await examineRunning(file, { isOffline: true })
      expect(findings.complaints.join('\n')).toMatch(expected)
      expect(findings.complaints.filter((line) => !line.includes('client file'))).toEqual([])
    })
  })
})

describe('files and folders', () => {
  test('a wrong configuration: all that is wrong, with its line', async () => {
    await using patient = await createPatient(origin)
    await patient.write('config.yaml', 'listen:\n  port: 99999\ndataDirectory: x\n')
    const findings = await patient.examine()
    expect(findings.about('problem configuration')).toMatch(
      /config\.yaml:2:3: listen\.port.*\n.*config\.yaml:3:1.*dataDir/,
    )
    expect(findings.lines).toHaveLength(2)
  })

  test('a data folder that is a file', async () => {
    const findings = await examineWith({}, (folder) => writeFile(join(folder, 'data'), ''))
    expect(findings.about('problem data folder')).toMatch(/data is no folder.*choose another dataDir/)
  })

  test('a data folder of a newer version', async () => {
    await using patient = await createPatient(origin)
    await patient.write('data/format', '2\n')
    expect((await patient.examine()).about('problem data folder')).toMatch(
      /format 2, and this version reads format 1.*Use the version/,
    )
  })

  test('a token that everybody can read', async () => {
    await using patient = await createPatient(origin)
    await patient.write('data/state/admin-token', 'secret-token', 0o644)
    const findings = await patient.examine()
    expect(findings.about('problem state folder')).toMatch(
      /admin-token can be read by other users \(mode 0644\).*chmod 0600/,
    )
    expect(findings.lines.join()).not.toContain('secret-token')
  })

  test('a secret in a file that everybody can read', async () => {
    const token = `\${file:./token}`
    const origins = { [HOST]: { address: origin.address, caFile: './origin-ca.pem', token } }
    await using patient = await createPatient(origin)
    await patient.write('config.yaml', stringify({ listen: { port: 0 }, admin: 'off', origins }))
    await patient.write('token', 'the-token', 0o644)
    expect((await patient.examine()).about('warning secret files')).toMatch(
      /token holds a secret.*mode 0644.*chmod 0640/,
    )
  })

  test('more free space wanted than the disk has', async () => {
    const findings = await examineWith({ archives: { minFree: '900TB' } })
    expect(findings.about('problem space')).toMatch(
      /minFree \(900 TB\) is more than the whole disk.*Set archives\.minFree/,
    )
  })

  test('a port that another process has', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const findings = await examineWith({ listen: { port } })
    other.close()
    expect(findings.about('problem listener')).toMatch(/another process listens there.*set listen\.port/)
  })

  test('an address that this machine does not have', async () => {
    const findings = await examineWith({ listen: { host: '192.0.2.1', port: await freePort() } })
    expect(findings.about('problem listener')).toMatch(/no such address.*Set listen\.host/)
  })

  test('an admin socket in a folder that others can write', async () => {
    const findings = await examineWith({ admin: { listen: { socket: '/tmp/terramirror.sock' } } })
    expect(findings.about('problem admin API')).toMatch(/other users can write \/tmp.*Name a folder below it/)
  })

  test.each([
    [
      'of another machine',
      { hostname: `not-${hostname()}`, pid: 7 },
      /problem lock: another machine.*process 7 on not-.*choose another dataDir/,
    ],
    [
      'of a process that was killed',
      { hostname: hostname(), pid: 4_000_001 },
      /warning lock: held by process 4000001.*Nothing to do/,
    ],
  ])('a lock %s', async (_, holder, expected) => {
    await using patient = await createPatient(origin)
    await patient.write('data/lock', JSON.stringify({ ...holder, since: '2026-01-01T00:00:00Z', token: 'x' }))
    expect((await patient.examine()).lines.join('\n')).toMatch(expected)
  })
})

describe('origins', () => {
  const at = (settings: Record<string, unknown>, host = HOST): More => ({
    origins: { [host]: { address: origin.address, caFile: './origin-ca.pem', ...settings } },
    defaultOrigin: host,
  })

  test('a clock that is an hour ahead', async () => {
    await using patient = await createPatient(origin)
    const findings = await patient.examine({ now: () => new Date(Date.now() + 3_600_000) })
    expect(findings.about('problem clock')).toMatch(/36\d\d s ahead of the origins.*Set the clock \(NTP\)/)
  })

  test('a clock that is behind what the mirror wrote, where no origin is asked', async () => {
    await using patient = await createPatient(origin)
    await patient.write('data/format', '1\n')
    const findings = await patient.examine({ isOffline: true, now: () => new Date(Date.now() - 3_600_000) })
    expect(findings.about('problem clock')).toMatch(/format was written at .*Set the clock \(NTP\)/)
  })

  test('a name that nobody knows', async () => {
    const findings = await examineWith({
      origins: { 'registry.nowhere.invalid': {} },
      defaultOrigin: 'registry.nowhere.invalid',
    })
    expect(findings.about('problem origin')).toMatch(
      /the name registry\.nowhere\.invalid cannot be looked up.*name server/,
    )
  })

  test('an address at which nothing listens', async () => {
    const findings = await examineWith(at({ address: `127.0.0.1:${await freePort()}` }))
    expect(findings.about('problem origin')).toMatch(
      /does not take a connection: ECONNREFUSED.*address, and that the registry runs/,
    )
  })

  test('a name that leads to a private address', async () => {
    const findings = await examineWith({ origins: { 'localhost:8443': {} }, defaultOrigin: 'localhost:8443' })
    expect(findings.about('problem origin')).toMatch(
      /refuses to connect: .*not a public address.*allowPrivateAddresses/,
    )
  })

  test('a certificate of an authority that nobody knows, as an inspecting proxy makes them', async () => {
    await using patient = await createPatient(origin)
    const other = await createTestAuthority()
    await patient.write('origin-ca.pem', other.caPem)
    const findings = await patient.examine()
    expect(findings.about('problem origin')).toMatch(
      /issued by CN=Test authority.*nobody here trusts.*TLS-inspecting proxy.*upstream\.caFile/,
    )
  })

  test('a file of its authority that cannot be read', async () => {
    const findings = await examineWith(at({ caFile: './none.pem' }))
    expect(findings.about('problem origin')).toMatch(/none\.pem cannot be read \(ENOENT\).*caFile/)
  })

  test('a certificate for another name', async () => {
    const findings = await examineWith(at({}, 'elsewhere.example.test'))
    expect(findings.about('problem origin')).toMatch(/its certificate is for other names.*right host/)
  })

  test('a wrong token', async () => {
    await using guarded = await startOrigin({ hosts: [HOST], tokens: { [HOST]: 'right' } })
    await guarded.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using patient = await createPatient(guarded, {
      origins: { [HOST]: { address: guarded.address, caFile: './origin-ca.pem', token: 'wrong-secret' } },
    })
    const findings = await patient.examine()
    expect(findings.about('problem origin')).toMatch(
      /status 401.*Set the right token at origins\["registry\.example\.test"\]\.token/,
    )
    expect(findings.lines.join()).not.toContain('wrong-secret')
  })

  test('a sign-in page in place of discovery', async () => {
    origin.fault({ kind: 'discovery' }, { status: 200, body: '<html>', contentType: 'text/html' })
    const findings = await examineWith({})
    expect(findings.about('problem origin')).toMatch(/media type is text\/html.*sign-in page or a filter/)
  })

  test('a host that is no registry', async () => {
    origin.fault({ kind: 'discovery' }, { status: 404 })
    expect((await examineWith({})).about('problem origin')).toMatch(
      /offers no Terraform services.*Is registry\.example\.test the host/,
    )
  })

  test('a signature by a key that is not listed', async () => {
    await origin.publish({ provider: 'acme/forged', version: '1.0.0', listedKeys: [await createOriginKey()] })
    await using patient = await createPatient(origin)
    const findings = await patient.examine({ providers: [`${HOST}/acme/forged`] })
    expect(findings.about('ok origin registry.example.test: versions')).toContain('1.0.0')
    expect(findings.about(`problem origin ${HOST}: download and signature`)).toMatch(/signature.*tell the publisher/i)
  })

  test('no signature where one is required', async () => {
    await origin.publish({ provider: 'acme/unsigned', version: '1.0.0', key: null })
    await using patient = await createPatient(origin)
    const findings = await patient.examine({ providers: [`${HOST}/acme/unsigned`] })
    expect(findings.about('problem origin')).toMatch(/signatures: whenListed/)
  })

  test('an origin that never answers does not hold the others up', async () => {
    await using silent = await startOrigin({ hosts: ['silent.example.test'] })
    silent.fault({}, { hang: true })
    const silentCa = { address: silent.address, caFile: './silent-ca.pem' }
    await using patient = await createPatient(origin, {
      origins: { [HOST]: { address: origin.address, caFile: './origin-ca.pem' }, 'silent.example.test': silentCa },
    })
    await patient.write('silent-ca.pem', silent.caPem)
    const findings = await patient.examine({ limitMs: 12_000 })
    expect(findings.about(`ok origin ${HOST}: download and signature`)).not.toBe('')
    expect(findings.about('problem origin silent.example.test')).not.toBe('')
    expect(findings.about(`problem origin ${HOST}`)).toBe('')
  })

  test.each([
    [407, /the proxy .* wants other credentials \(407\).*upstream\.proxy/],
    [403, /the proxy .* refuses a connection to registry\.example\.test \(403\).*allowed on the proxy/],
  ])('a proxy that answers CONNECT with %d', async (status, expected) => {
    await using proxy = await startProxy(origin.port)
    proxy.status = status
    const upstream = { proxy: `http://user:proxy-secret@127.0.0.1:${proxy.port}` }
    const findings = await examineWith({ origins: { [HOST]: { caFile: './origin-ca.pem' } }, upstream })
    expect(findings.about('problem origin')).toMatch(expected)
    expect(findings.lines.join()).not.toContain('proxy-secret')
  })

  test('a proxy that lets through: all is well', async () => {
    await using proxy = await startProxy(origin.port)
    const upstream = { proxy: `http://127.0.0.1:${proxy.port}` }
    const findings = await examineWith({ origins: { [HOST]: { caFile: './origin-ca.pem' } }, upstream })
    expect(findings.complaints).toEqual([])
    expect(findings.about('ok origin')).toContain('through the proxy 127.0.0.1')
  })

  test('a proxy that does not run', async () => {
    const upstream = { proxy: `http://127.0.0.1:${await freePort()}` }
    const findings = await examineWith({ origins: { [HOST]: { caFile: './origin-ca.pem' } }, upstream })
    expect(findings.about('problem proxy')).toMatch(/does not take a connection: ECONNREFUSED.*that the proxy runs/)
    expect(findings.about('problem origin')).toContain('not reached through the proxy')
  })

  test('a sealed mirror has its origins and its proxy left alone', async () => {
    await using proxy = await startProxy(origin.port)
    const upstream = { proxy: `http://127.0.0.1:${proxy.port}` }
    const findings = await examineWith({ mode: 'sealed', upstream })
    expect(findings.complaints).toEqual([])
    expect(findings.about('skipped proxy')).toContain('sealed')
    expect([origin.connections, proxy.asked]).toEqual([0, []])
  })

  test('--offline asks no origin', async () => {
    await using patient = await createPatient(origin)
    const findings = await patient.examine({ isOffline: true })
    expect(findings.complaints).toEqual([])
    expect(origin.connections).toBe(0)
  })
})

test('things that are broken at once are all named', async () => {
  origin.fault({ kind: 'discovery' }, { status: 404 })
  await using patient = await createPatient(origin, {
    listen: { port: await freePort(), tls: { certFile: './none.pem', keyFile: './none.key' } },
    archives: { minFree: '900TB' },
    publicUrl: 'https://localhost:9/',
  })
  await patient.write('data/format', '7')
  await patient.write('data/state/admin-token', 'x', 0o666)
  const clientFile = await patient.write('tofurc', 'plugin_cache_dir = "/nowhere"\n')
  const findings = await patient.examine({ clientFile, now: () => new Date(Date.now() - 3_600_000) })
  const broken = [
    'data folder',
    'state folder',
    'space',
    'certificate',
    'clock',
    `origin ${HOST}`,
    'base URL',
    'client file',
  ]
  for (const name of broken) expect(findings.about(`problem ${name}`), name).not.toBe('')
})

describe('the command', () => {
  test('ends with 1 where something is wrong, and says in one line what, and what to do', async () => {
    await using patient = await createPatient(origin)
    await patient.write('data/format', '7')
    const run = await runCommand(['doctor', '--config', join(patient.folder, 'config.yaml'), '--offline'])
    expect(run.code).toBe(1)
    expect(run.stdout).toMatch(/^WRONG {4}data folder: .*format 7.*Use the version/m)
    expect(run.stdout).toMatch(/1 wrong, 0 warnings\n$/)
  })

  test.each([
    ['--base-url', 'https://user:hunter2@mirror.example.test/'],
    ['--base-url', 'mirror'],
    ['--base-url', 'https://mirror.example.test/providers/'],
    ['--provider', 'hashicorp'],
    ['--no-such-option'],
  ])('ends with 2 for %s %s', async (...words) => {
    const run = await runCommand(['doctor', ...words])
    expect(run.code).toBe(2)
    expect(run.stderr).not.toContain('hunter2')
  })
})

describe('docs/doctor.md and --help', () => {
  const page = readFileSync(new URL('../../docs/doctor.md', import.meta.url), 'utf8')

  test('have examples that parse', async () => {
    const { stdout } = await runCommand(['doctor', '--help'])
    const examples = [...`${page}\n${stdout}`.matchAll(/^ *terramirror (doctor.*)$/gm)].map(([, line = '']) => line)
    expect(examples.length).toBeGreaterThanOrEqual(8)
    for (const line of examples) {
      const program = new Command().exitOverride()
      addDoctor(program)
      let ran = false
      program.commands[0]?.action(() => {
        ran = true
      })
      await program.parseAsync(line.split(' '), { from: 'user' })
      expect(ran).toBe(true)
    }
  })

  test('the page names every option and every check', async () => {
    const { stdout } = await runCommand(['doctor', '--help'])
    for (const [, option] of stdout.matchAll(/^ {2}(--[\w-]+)/gm)) expect(page).toContain(`\`${option}`)
    const findings = await examineWith({})
    for (const { check } of findings.all) expect(page).toContain(`\`${check.replace(/^origin .*/, 'origin HOST')}\``)
  })
})
