import { execFile, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { silentLog } from '../../src/log.ts'
import { parseCertificateAuthority } from '../../src/tls/certificate-authority.ts'
import { issueServerCertificate } from '../../src/tls/server-certificate.ts'
import { openTlsIdentity, type TlsIdentity, type TlsIdentityOptions } from '../../src/tls/tls-identity.ts'

const run = promisify(execFile)
const hasOpenssl = spawnSync('openssl', ['version']).status === 0
if (!hasOpenssl) console.warn('SKIPPED: openssl is not there, certificates are not checked by it')
const DAY_MS = 86_400_000

let stateDir: string
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'terramirror-tls-'))
})
afterEach(() => rm(stateDir, { recursive: true }))

async function open(options: Partial<TlsIdentityOptions> = {}): Promise<TlsIdentity> {
  const identity = await openTlsIdentity({
    tls: 'auto',
    stateDir,
    listenHost: '127.0.0.1',
    machineName: 'builder-1',
    log: silentLog(),
    ...options,
  })
  if (identity === undefined) throw new Error('no identity')
  return identity
}

/** Opens, closes, and tells what is then in the folder. */
async function start(options: Partial<TlsIdentityOptions> = {}) {
  await using _ = await open(options)
  return { ca: await file('ca.pem'), server: await file('server.pem'), names: namesOf(await file('server.pem')) }
}

function file(name: string): Promise<string> {
  return readFile(join(stateDir, 'tls', name), 'utf8')
}

function namesOf(pem: string): string[] {
  const entries = new X509Certificate(pem).subjectAltName?.split(', ') ?? []
  return entries.map((entry) => entry.replace(/^(DNS|IP Address):/, '').toLowerCase())
}

function logLines(): { log: ReturnType<typeof silentLog>; lines: { level: number; msg: string }[] } {
  const lines: { level: number; msg: string }[] = []
  return { log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }), lines }
}

async function verify(name: string, certificate = join(stateDir, 'tls/server.pem')): Promise<string> {
  const check = isIP(name) === 0 ? '-verify_hostname' : '-verify_ip'
  const args = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', join(stateDir, 'tls/ca.pem')]
  return run('openssl', [...args, check, name, certificate]).then(
    () => 'OK',
    (error: { stderr: string }) => error.stderr,
  )
}

test('off has no identity', async () => {
  expect(await openTlsIdentity({ tls: 'off', stateDir, listenHost: '::', log: silentLog() })).toBeUndefined()
  expect(await readdir(stateDir)).toEqual([])
})

test.runIf(hasOpenssl)('openssl accepts the certificate strictly, for each of its names and no other', async () => {
  const { names } = await start({
    tls: { auto: true, names: ['Mirror.CI.svc', '*.pods.svc', '10.1.2.3', '2001:DB8::1'] },
    listenHost: '192.0.2.7',
    publicUrl: 'https://mirror.example.com:8443/base/',
  })
  const expected = ['localhost', '127.0.0.1', '::1', '192.0.2.7', 'mirror.example.com', 'mirror.ci.svc']
  for (const name of [...expected, 'a.pods.svc', '10.1.2.3', '2001:db8::1', 'builder-1']) {
    expect(await verify(name), name).toBe('OK')
  }
  expect(names).toHaveLength(10)
  for (const name of ['other.example', '10.1.2.4', '2001:db8::2', 'a.b.pods.svc', 'builder-2']) {
    expect(await verify(name), name).toMatch(/mismatch/)
  }
})

test.runIf(hasOpenssl)('a stolen authority key is of no use for other names', async () => {
  await start({ publicUrl: 'https://mirror.example.com/' })
  const key = await file('ca-key.pem')
  const authority = await parseCertificateAuthority(key, key)
  const forged = join(stateDir, 'forged.pem')
  for (const name of ['registry.terraform.io', 'example.com', '10.9.9.9', '127.0.0.2', '2001:db8::1']) {
    await writeFile(forged, (await issueServerCertificate(authority, [name], new Date())).certificate)
    expect(await verify(name, forged), name).toContain('permitted subtree violation')
  }
  await writeFile(forged, (await issueServerCertificate(authority, ['mirror.example.com'], new Date())).certificate)
  expect(await verify('mirror.example.com', forged)).toBe('OK')
  const { stdout } = await run('openssl', ['x509', '-in', join(stateDir, 'tls/ca.pem'), '-noout', '-text'])
  expect(stdout).toContain('X509v3 Name Constraints: critical')
})

test('a client that trusts ca.pem or the bundle connects to every loopback name; one that does not refuses', async () => {
  await using identity = await open()
  const hosts = ['127.0.0.1', 'localhost', ...(hasIpv6() ? ['::1'] : [])]
  if (!hasIpv6()) console.warn('SKIPPED: there is no IPv6 loopback here')
  for (const address of hosts) {
    const server = https.createServer(identity.secureContext(), (_, response) => response.end('ok'))
    server.listen(0, address)
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      for (const ca of [identity.caFile, identity.caBundleFile]) {
        expect(await get(address, port, await readFile(ca ?? ''))).toBe('ok')
      }
      await expect(get(address, port)).rejects.toThrow(/unable to verify|self-signed/)
    } finally {
      server.close()
    }
  }
})

test('keys are readable by their owner alone, whatever the umask and whatever happened to them', async () => {
  const mode = async (name: string) => (await stat(join(stateDir, 'tls', name))).mode & 0o777
  const previous = process.umask(0)
  try {
    await start()
    expect([await mode('.'), await mode('ca-key.pem'), await mode('server-key.pem')]).toEqual([0o700, 0o600, 0o600])
    expect([await mode('ca.pem'), await mode('ca-bundle.pem')]).toEqual([0o644, 0o644])
    for (const name of ['.', 'ca-key.pem', 'server-key.pem']) await chmod(join(stateDir, 'tls', name), 0o755)
    process.umask(0o777)
    await start({ tls: { auto: true, names: ['new.example'] } })
    expect([await mode('.'), await mode('ca-key.pem'), await mode('server-key.pem')]).toEqual([0o700, 0o600, 0o600])
    expect([await mode('ca-key.pem.old'), await mode('ca.pem'), await mode('server.pem')]).toEqual([
      0o600, 0o644, 0o644,
    ])
  } finally {
    process.umask(previous)
  }
})

test('a restart keeps the authority and the certificate, and clears what a crash left', async () => {
  const first = await start()
  await writeFile(join(stateDir, 'tls/ca.pem.0123.tmp'), 'half')
  expect(await start()).toEqual(first)
  expect(await readdir(join(stateDir, 'tls'))).toEqual([
    'ca-bundle.pem',
    'ca-key.pem',
    'ca.pem',
    'server-key.pem',
    'server.pem',
  ])
})

test('a new machine name keeps the authority that clients trust, and is left out', async () => {
  const first = await start({ machineName: 'pod-a' })
  expect(first.names).toContain('pod-a')
  const { log, lines } = logLines()
  const second = await start({ machineName: 'pod-b', log })
  expect(second.ca).toBe(first.ca)
  expect(second.names).not.toContain('pod-b')
  expect(lines.map(({ msg }) => msg).join()).toContain('leaves out this machine')
  expect(lines.some(({ level }) => level >= 40)).toBe(false)
  expect((await start({ machineName: 'pod-a' })).names).toContain('pod-a')
  expect((await start({ machineName: 'not a name' })).ca).toBe(first.ca)
})

test('a new configured name makes a new authority, loudly, and keeps the old one aside', async () => {
  const first = await start()
  const oldKey = await file('ca-key.pem')
  const { log, lines } = logLines()
  const second = await start({ publicUrl: 'https://mirror.example.com/', log })
  expect(second.ca).not.toBe(first.ca)
  expect(second.names).toContain('mirror.example.com')
  expect(new X509Certificate(second.server).checkIssued(new X509Certificate(second.ca))).toBe(true)
  expect(await file('ca.pem.old')).toBe(first.ca)
  expect(await file('ca-key.pem.old')).toBe(oldKey)
  expect(await file('ca-bundle.pem')).toContain(second.ca)
  const warnings = lines.filter(({ level }) => level === 40).map(({ msg }) => msg)
  expect(warnings).toEqual([expect.stringMatching(/NEW .* may not sign for mirror\.example\.com; every client must/)])
})

test('the bundle follows the roots of the system, but a start that has one does not wait for them', async () => {
  const { ca } = await start()
  const whole = await file('ca-bundle.pem')
  await writeFile(join(stateDir, 'tls/ca-bundle.pem'), `an old root\n${ca}`)
  await start()
  expect(await file('ca-bundle.pem')).toBe(`an old root\n${ca}`)
  {
    await using _ = await open({ checkIntervalMs: 5 })
    await vi.waitFor(async () => expect(await file('ca-bundle.pem')).toBe(whole))
  }
  await writeFile(join(stateDir, 'tls/ca-bundle.pem'), 'of another authority')
  await start()
  expect(await file('ca-bundle.pem')).toBe(whole)
})

test('a name that is no longer configured leaves the certificate, but not the authority', async () => {
  const first = await start({ tls: { auto: true, names: ['a.example'] } })
  const second = await start()
  expect(second.ca).toBe(first.ca)
  expect(second.names).not.toContain('a.example')
  expect((await start({ tls: { auto: true, names: ['b.a.example'] } })).ca).toBe(first.ca)
})

test('the running server renews its certificate under the same authority, and much later the authority', async () => {
  let now = new Date()
  await using identity = await open({ now: () => now, checkIntervalMs: 5 })
  const changed = vi.fn()
  identity.onChange(changed)
  const first = { ca: await file('ca.pem'), cert: identity.secureContext().cert }

  now = new Date(now.getTime() + 366 * DAY_MS)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(changed).not.toHaveBeenCalled()

  now = new Date(now.getTime() + 2 * DAY_MS)
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1))
  expect(identity.secureContext().cert).not.toBe(first.cert)
  expect(await file('ca.pem')).toBe(first.ca)

  now = new Date(now.getTime() + 3255 * DAY_MS)
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(2))
  expect(await file('ca.pem')).not.toBe(first.ca)
  expect(await file('ca.pem.old')).toBe(first.ca)
})

test('a certificate never outlives its authority', async () => {
  const now = new Date()
  await start({ now: () => now })
  await start({ now: () => new Date(now.getTime() + 3500 * DAY_MS) })
  const end = (pem: string) => Date.parse(new X509Certificate(pem).validTo)
  expect(end(await file('server.pem'))).toBe(end(await file('ca.pem')))
})

test('a failing check keeps the certificate in use', async () => {
  const { log, lines } = logLines()
  await using identity = await open({ checkIntervalMs: 5, log })
  const { cert } = identity.secureContext()
  await writeFile(join(stateDir, 'tls/ca-key.pem'), 'damaged')
  await vi.waitFor(() => expect(lines.some(({ level }) => level === 50)).toBe(true))
  expect(identity.secureContext().cert).toBe(cert)
})

test('a damaged server certificate is replaced, under the same authority', async () => {
  const first = await start()
  for (const [name, text] of [
    ['server.pem', 'damaged'],
    ['server-key.pem', 'damaged'],
    ['server-key.pem', await file('ca-key.pem')],
    ['server.pem', first.ca],
  ] as const) {
    await writeFile(join(stateDir, 'tls', name), text)
    const next = await start()
    expect(next.ca).toBe(first.ca)
    expect(new X509Certificate(next.server).checkIssued(new X509Certificate(first.ca))).toBe(true)
    expect(next.names).toEqual(first.names)
  }
})

test('a damaged authority is an error that says what to do, never a silent new one', async () => {
  await start()
  const key = await file('ca-key.pem')
  const other = key.replace(/-----BEGIN PRIVATE[\s\S]*END PRIVATE KEY-----/, '')
  for (const text of [
    '',
    'damaged',
    other,
    key.slice(0, 100),
    `${await file('server-key.pem')}${await file('ca.pem')}`,
  ]) {
    await writeFile(join(stateDir, 'tls/ca-key.pem'), text)
    const error: unknown = await start().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(MirrorError)
    expect(error).toMatchObject({ code: 'CONFIGURATION', message: expect.stringContaining('Restore ca-key.pem') })
  }
  await rm(join(stateDir, 'tls/ca-key.pem'))
  await expect(start()).rejects.toThrow('the file is missing')
  await writeFile(join(stateDir, 'tls/ca-key.pem'), key)
  await writeFile(join(stateDir, 'tls/ca.pem'), 'damaged')
  expect((await start()).ca).toContain('BEGIN CERTIFICATE')
})

test('a folder that cannot be written is a storage error', async () => {
  await writeFile(join(stateDir, 'tls'), 'a file')
  await expect(start()).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
})

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))
}

function get(host: string, port: number, ca?: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host, port, agent: false, ...(ca && { ca }) } as const
    const request = https.get(options, async (response) => {
      let text = ''
      for await (const chunk of response) text += String(chunk)
      resolve(text)
    })
    request.on('error', reject)
  })
}
