import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { gitHttpBackend } from '../origin/git-host.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { SshHost, sshServer } from '../origin/ssh-host.ts'
import { SourceFolder } from '../upstream/module-source/archive-fixture.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { startProxy } from '../upstream/proxy-fixture.ts'
import { type Answer, spawnMirror, startMirror, type TestMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { askModule, fetchModule, locationOf } from './module-door.ts'

/*
 * Where git may go, and what may run with it. The origin's own host is at its configured address; everything else of
 * these tests is on loopback too, and therefore private.
 */

const CDN = 'cdn.example.test'
const ready = [gitHttpBackend(), sshServer()].every((program) => program !== undefined)

let opened: AsyncDisposableStack
let origin: TestOrigin
let sshHost: SshHost
let net: GitRepository
let count = 0

beforeAll(async () => {
  if (!ready) return
  opened = new AsyncDisposableStack()
  origin = opened.use(await startOrigin())
  sshHost = opened.use(await SshHost.start())
  net = opened.use(await GitRepository.make())
  await net.commit({ 'main.tf': '# net\n' }, { tag: 'v1.0.0' })
  origin.serveGit('acme/net', { path: net.path })
})
afterAll(async () => {
  if (ready) await opened.disposeAsync()
})
beforeEach(() => {
  if (ready) origin.reset()
})

/** Publishes a module under a name that no other test used. */
function publish(location: string): string {
  count += 1
  const module = `acme/guarded${count}/aws`
  origin.publishModule({ module, version: '1.0.0', location })
  return module
}

function start(config: Record<string, unknown> & { rules?: Record<string, unknown> } = {}): Promise<TestMirror> {
  const { rules = {}, ...rest } = config
  return startMirror({ origin, config: { upstream: { retries: 0 }, ...rest, origins: { [HOST]: rules } } })
}

async function refusalOf(mirror: TestMirror, location: string): Promise<Answer> {
  const answer = await askModule(mirror, publish(location), '1.0.0')
  expect(answer.headers['x-terraform-get']).toBeUndefined()
  return answer
}

const own = (rest: string): string => `git::https://${HOST}/git/${rest}`
/** The same server at an address that is not the configured one of an origin. */
const elsewhere = (): string => `${origin.url(CDN)}git/acme/net.git`
/** Nobody came by the other way. */
const strangers = (): string[] => origin.requests.filter(({ host }) => host === CDN).map(({ key }) => key)

describe.skipIf(!ready)('git goes where the rules of the origin let it go', () => {
  let mirror: TestMirror
  beforeAll(async () => {
    mirror = await start({
      hosts: {
        [`127.0.0.1:${sshHost.port}`]: { sshKeyFile: sshHost.keyFile, knownHostsFile: sshHost.knownHostsFile },
      },
    })
  })
  afterAll(() => mirror[Symbol.asyncDispose]())

  test.each([
    ['https at a private address', () => `git::${elsewhere()}`, /127\.0\.0\.1.*private|loopback|public/],
    ['https at a private address that is far away', () => 'git::https://10.1.2.3/net.git', /10\.1\.2\.3/],
    ['a metadata service', () => 'git::https://169.254.169.254/latest.git', /169\.254\.169\.254/],
    ['a name of this machine', () => 'git::https://localhost/net.git', /localhost/],
    ['ssh at a private address', () => sshHost.source(net.path), /127\.0\.0\.1/],
  ])('a repository by %s is refused', async (_, location, says) => {
    const answer = await refusalOf(mirror, location())
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(answer.json().error).toMatch(says)
    expect([strangers(), sshHost.logins]).toEqual([[], 0])
  })

  test.each([
    ['a private address', () => elsewhere(), 'UPSTREAM_REFUSED'],
    ['a metadata service', () => 'https://169.254.169.254/git/acme/net.git', 'UPSTREAM_REFUSED'],
    ['plain http', () => `http://${HOST}/git/acme/net.git`, 'UPSTREAM_REFUSED'],
    ['a file', () => `file://${net.path}`, 'UPSTREAM_REFUSED'],
  ])('a redirect to %s is refused', async (_, target, code) => {
    const redirect = `${target()}/info/refs?service=git-upload-pack`
    using away = origin.fault({ kind: 'git', host: HOST }, { redirect })
    const answer = await refusalOf(mirror, own('acme/net.git'))
    expect([answer.status, answer.json().code], answer.json().error).toEqual([502, code])
    expect(away.struck).toBe(1)
    expect(strangers()).toEqual([])
  })

  test('a redirect within the host is followed', async () => {
    const redirect = `https://${HOST}/git/acme/net.git/info/refs?service=git-upload-pack`
    using away = origin.fault({ kind: 'git', repository: 'acme/old' }, { redirect })
    origin.serveGit('acme/old', { path: net.path })
    expect(await fetchModule(mirror, publish(own('acme/old.git?ref=v1.0.0')), '1.0.0')).toEqual({
      'main.tf': '# net\n',
    })
    expect(away.struck).toBeGreaterThan(0)
  })

  test.each([
    ['https at a private address', () => elsewhere(), 'UPSTREAM_REFUSED'],
    ['ssh at a private address', () => sshHost.source(net.path).slice('git::'.length), 'UPSTREAM_REFUSED'],
    ['a file', () => `file://${net.path}`, 'MODULE_SOURCE_REFUSED'],
    ['a command', () => 'ext::sh -c touch%20/tmp/x', 'MODULE_SOURCE_REFUSED'],
    ['an option', () => '--upload-pack=touch', 'UPSTREAM_INVALID'],
  ])('a submodule by %s is refused', async (_, url, code) => {
    await using outer = await GitRepository.make()
    outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `file://${net.path}`, 'sub')
    await outer.folder.write({ '.gitmodules': `[submodule "sub"]\n\tpath = sub\n\turl = ${url()}\n` })
    await outer.commit({})
    origin.serveGit('acme/outer', { path: outer.path })
    const answer = await refusalOf(mirror, own('acme/outer.git'))
    expect([answer.status, answer.json().code], answer.json().error).toEqual([502, code])
    expect([strangers(), sshHost.logins]).toEqual([[], 0])
  })

  test('what fails in a submodule is told by its own name', async () => {
    await using outer = await GitRepository.make()
    outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `file://${net.path}`, 'sub')
    await outer.folder.write({ '.gitmodules': '[submodule "sub"]\n\tpath = sub\n\turl = ../private.git\n' })
    await outer.commit({})
    origin.serveGit('acme/outer', { path: outer.path })
    origin.serveGit('acme/private', { path: net.path, login: 'somebody:else' })
    const { code, upstream_url: url, error } = (await refusalOf(mirror, own('acme/outer.git'))).json()
    expect([code, url]).toEqual(['UPSTREAM_STATUS', `https://${HOST}/git/acme/private.git`])
    expect(error).toContain(`check the credentials in hosts.${HOST}`)
  })

  test('alternates of a repository at a private address are not asked', async () => {
    await using lacking = await GitRepository.make()
    await lacking.commit({ 'main.tf': '# net\n' })
    const blob = lacking.git('rev-parse', 'HEAD:main.tf')
    await rm(join(lacking.path, '.git/objects', blob.slice(0, 2), blob.slice(2)))
    await writeFile(join(lacking.path, '.git/objects/info/http-alternates'), `${elsewhere()}/objects\n`)
    origin.serveGit('acme/lacking', { path: lacking.path, style: 'dumb' })
    const answer = await refusalOf(mirror, own('acme/lacking.git'))
    expect(origin.requests.map(({ url }) => url)).toContain('/git/acme/lacking.git/objects/info/http-alternates')
    expect([answer.status, answer.json().code], answer.json().error).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(strangers()).toEqual([])
  })

  test.each([
    ['hg', 'hg::https://hg.example.test/net'],
    ['s3', 's3::https://s3.amazonaws.com/bucket/net.zip'],
    ['gcs', 'gcs::https://www.googleapis.com/storage/v1/bucket/net.zip'],
    ['git::http', `git::http://${HOST}/git/acme/net.git`],
    ['git::file', 'git::file:///etc'],
    ['git::ssh', 'git::ssh://git@git.example.test/acme/net.git'],
    ['git', 'git::https://git.example.test/net.git?ref=--upload-pack=touch'],
    ['git', 'git::ssh://-oProxyCommand=touch/net.git'],
    ['git', `git::https://${HOST}/git/acme/net.git?sshkey=cGxhbnRlZA==`],
    ['ext', 'ext::sh -c touch'],
  ])('a source by %s is refused, by its name, and never passed on: %s', async (scheme, location) => {
    const answer = await refusalOf(mirror, location)
    expect([answer.status, answer.json().code]).toEqual([502, 'MODULE_SOURCE_REFUSED'])
    expect(answer.json().error).toMatch(scheme === 'ext' ? /module source/ : new RegExp(`\\(${scheme}\\)`))
    expect(answer.body.toString()).not.toContain('cGxhbnRlZA')
    expect(origin.count('git')).toBe(0)
  })

  test('an archive by plain http is refused', async () => {
    const answer = await refusalOf(mirror, `http://${HOST}/files/a.zip`)
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(answer.json().error).toContain('http: is not an allowed scheme')
  })
})

describe.skipIf(!ready)('git trusts whom the configuration trusts', () => {
  const private_ = { allowPrivateAddresses: true }
  const ssh = (files: { sshKeyFile?: string; knownHostsFile?: string } = {}) => ({
    hosts: {
      [`127.0.0.1:${sshHost.port}`]: {
        sshKeyFile: sshHost.keyFile,
        knownHostsFile: sshHost.knownHostsFile,
        ...files,
      },
    },
  })

  test('hosts outside allowedHosts are refused, by https and by ssh; those within are not', async () => {
    const rules = { ...private_, allowedHosts: [`127.0.0.1:${sshHost.port}`] }
    await using mirror = await start({ rules, ...ssh() })
    const answer = await refusalOf(mirror, `git::${elsewhere()}`)
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(answer.json().error).toContain('allowedHosts')
    const module = publish(sshHost.source(net.path))
    expect(await fetchModule(mirror, module, '1.0.0')).toEqual({ 'main.tf': '# net\n' })
  })

  test('a redirect to a host outside allowedHosts is refused, although its address is public', async () => {
    await using proxy = await startProxy(origin.port)
    await using mirror = await start({
      upstream: { retries: 0, proxy: `http://127.0.0.1:${proxy.port}` },
      rules: { allowedHosts: [CDN] },
    })
    const redirect = 'https://other.example.test/git/acme/net.git/info/refs?service=git-upload-pack'
    using away = origin.fault({ kind: 'git', host: CDN }, { redirect })
    const answer = await refusalOf(mirror, `git::https://${CDN}/git/acme/net.git?ref=v1.0.0`)
    expect([answer.status, answer.json().code], answer.json().error).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(answer.json().error).toContain('other.example.test is not among the allowedHosts')
    expect([away.struck, proxy.asked]).toEqual([1, [`CONNECT ${CDN}:443`]])
  })

  test('a host key that is not known is refused before anything is sent', async () => {
    await using files = await SourceFolder.make()
    files.run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', 'other')
    const other = await readFile(join(files.path, 'other.pub'), 'utf8')
    await files.write({ known_hosts: `[127.0.0.1]:${sshHost.port} ${other}` })
    await using mirror = await start({ rules: private_, ...ssh({ knownHostsFile: join(files.path, 'known_hosts') }) })
    const logins = sshHost.logins
    const answer = await refusalOf(mirror, sshHost.source(net.path))
    expect([answer.status, answer.json().code], answer.json().error).toEqual([502, 'UPSTREAM_TLS'])
    expect(answer.json().error).toMatch(/host key of 127\.0\.0\.1:\d+ is not known.*knownHostsFile/)
    expect(sshHost.logins).toBe(logins)
  })

  test('a key that the host does not know is told as such', async () => {
    await using files = await SourceFolder.make()
    files.run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', 'other')
    await using mirror = await start({ rules: private_, ...ssh({ sshKeyFile: join(files.path, 'other') }) })
    const answer = await refusalOf(mirror, sshHost.source(net.path))
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_STATUS'])
    expect(answer.json().error).toMatch(/Permission denied.*check the credentials in hosts\.127\.0\.0\.1/)
  })

  test('a certificate of a foreign authority is refused, unless its host has it in the configuration', async () => {
    await using foreign = await startOrigin()
    foreign.serveGit('acme/net', { path: net.path })
    const location = `git::${foreign.url()}git/acme/net.git?ref=v1.0.0`
    {
      await using mirror = await start({ rules: private_ })
      const answer = await refusalOf(mirror, location)
      expect([answer.status, answer.json().code], answer.json().error).toEqual([502, 'UPSTREAM_TLS'])
      expect(foreign.requests).toEqual([])
    }
    await using files = await SourceFolder.make({ 'ca.pem': foreign.caPem })
    const hosts = { [foreign.address]: { caFile: join(files.path, 'ca.pem') } }
    await using mirror = await start({ rules: private_, hosts })
    expect(await fetchModule(mirror, publish(location), '1.0.0')).toEqual({ 'main.tf': '# net\n' })
  })

  test('git goes through the proxy, with its login, but for the hosts of noProxy', async () => {
    await using proxy = await startProxy(origin.port)
    const upstream = { retries: 0, proxy: `http://me:planted@127.0.0.1:${proxy.port}` }
    const location = `git::https://${CDN}/git/acme/net.git?ref=v1.0.0`
    {
      await using mirror = await start({ upstream })
      expect(await fetchModule(mirror, publish(location), '1.0.0')).toEqual({ 'main.tf': '# net\n' })
      expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${CDN}:443`]))
      expect(new Set(proxy.authorizations)).toEqual(new Set([`Basic ${btoa('me:planted')}`]))
      expect(mirror.logText).not.toContain('planted')
      proxy.status = 407
      const answer = await refusalOf(mirror, location)
      expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_UNREACHABLE'])
      expect(answer.json().error).toMatch(/proxy/i)
    }
    proxy.asked.length = 0
    await using mirror = await start({ upstream: { ...upstream, noProxy: '.example.test' } })
    const answer = await refusalOf(mirror, location)
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_UNREACHABLE'])
    expect(proxy.asked).toEqual([])
  })
})

describe.skipIf(!ready)('what runs with git', () => {
  test('nothing of our environment, of users, of the system or of the repository runs', async () => {
    await using trap = await SourceFolder.make({
      'run.sh': { run: `#!/bin/sh\necho "$0 $*" >>"$(dirname "$0")/ran"\ncat\n` },
    })
    const run = join(trap.path, 'run.sh')
    const settings =
      `[core]\n\thooksPath = ${trap.path}/hooks\n\tsshCommand = ${run}\n\tfsmonitor = ${run}\n\tgitProxy = ${run}\n` +
      `[credential]\n\thelper = ${run}\n[url "file:///nowhere/"]\n\tinsteadOf = https://${HOST}/\n` +
      `[filter "trap"]\n\tsmudge = ${run}\n\trequired = true\n[filter "lfs"]\n\tsmudge = ${run}\n\tprocess = ${run}\n` +
      `[uploadpack]\n\tpackObjectsHook = ${run}\n[http]\n\tproxy = http://127.0.0.1:9\n`
    const hook = { run: `#!/bin/sh\n${run} hook\n` }
    const hooks = [
      'reference-transaction',
      'post-checkout',
      'post-update',
      'update',
      'pre-receive',
      'post-index-change',
    ]
    await trap.write({
      'home/.gitconfig': settings,
      'home/.config/git/config': settings,
      system: settings,
      ...Object.fromEntries(
        hooks.flatMap((name) => [
          [`hooks/${name}`, hook],
          [`template/hooks/${name}`, hook],
        ]),
      ),
    })
    await using repository = await GitRepository.make()
    await repository.commit(
      {
        'main.tf': '# trapped\n',
        'big.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n',
        '.gitattributes': '*.tf filter=trap\n*.bin filter=lfs diff=lfs merge=lfs -text\n',
        '.lfsconfig': `[lfs]\n\turl = https://${CDN}/lfs\n`,
      },
      { tag: 'v1.0.0' },
    )
    origin.serveGit('acme/trapped', { path: repository.path })
    const planted = {
      HOME: join(trap.path, 'home'),
      XDG_CONFIG_HOME: join(trap.path, 'home/.config'),
      GIT_CONFIG_GLOBAL: join(trap.path, 'home/.gitconfig'),
      GIT_CONFIG_SYSTEM: join(trap.path, 'system'),
      GIT_TEMPLATE_DIR: join(trap.path, 'template'),
      GIT_SSH_COMMAND: run,
      GIT_ASKPASS: run,
      GIT_PROXY_COMMAND: run,
      GIT_DIR: join(trap.path, 'nowhere'),
      GIT_EXEC_PATH: trap.path,
      GIT_TRACE: join(trap.path, 'ran'),
      GIT_SSL_NO_VERIFY: '1',
      LD_PRELOAD_OF_TEST: run,
      HTTPS_PROXY: 'http://127.0.0.1:9',
    }
    const before = { ...process.env }
    try {
      Object.assign(process.env, planted)
      await using mirror = await start({ upstream: { retries: 0, proxy: 'off' } })
      const files = await fetchModule(mirror, publish(own('acme/trapped.git?ref=v1.0.0')), '1.0.0')
      expect(files).toMatchObject({ 'main.tf': '# trapped\n', 'big.bin': expect.stringContaining('git-lfs') })
    } finally {
      for (const name of Object.keys(planted)) delete process.env[name]
      Object.assign(process.env, before)
    }
    expect(await readdir(trap.path)).not.toContain('ran')
    expect(strangers()).toEqual([])
  })

  test('no argument of a process shows a secret, and all of them end with the mirror', async () => {
    const login = 'planted-user:planted-password'
    origin.serveGit('acme/secret', { path: net.path, login })
    const mirror = await start({ hosts: { [HOST]: { basic: login } } })
    using _hangs = origin.fault({ kind: 'git', method: 'POST', repository: 'acme/secret' }, { hang: true })
    const asked = askModule(mirror, publish(own('acme/secret.git?ref=v1.0.0')), '1.0.0').catch(() => undefined)
    await origin.until(() => origin.count('POST git acme/secret') > 0, 30_000)
    const running = await processesOf(mirror)
    expect(running.length).toBeGreaterThan(1)
    for (const { command, environment } of running) {
      const [, proxyPassword = 'none'] = /terramirror:([\w-]{32})@127/.exec(environment) ?? []
      expect(proxyPassword).not.toBe('none')
      for (const secret of ['planted', proxyPassword, btoa(login)]) expect(command).not.toContain(secret)
      expect(environment).not.toContain('planted-password')
    }
    for (const name of (await readdir(join(mirror.dataDir, 'tmp'))).filter(isWorkspace))
      expect((await stat(join(mirror.dataDir, 'tmp', name))).mode & 0o077).toBe(0)
    await mirror[Symbol.asyncDispose]()
    await asked
    expect(await processesOf(mirror)).toEqual([])
    expect(mirror.logText).not.toMatch(/planted/)
  })

  test('a killed mirror leaves a workspace, which the next start removes; its git ends by itself', async () => {
    await using mirror = await spawnMirror({ origin })
    using _hangs = origin.fault({ kind: 'git', method: 'POST' }, { hang: true })
    const asked = askModule(mirror, publish(own('acme/net.git?ref=v1.0.0')), '1.0.0').catch(() => undefined)
    await origin.until(() => origin.count('POST git acme/net') > 0, 30_000)
    await mirror.kill()
    await asked
    expect((await readdir(join(mirror.dataDir, 'tmp'))).filter(isWorkspace)).toHaveLength(1)
    await expect.poll(() => processesOf(mirror), { timeout: 20_000 }).toEqual([])
    await mirror.start()
    expect((await readdir(join(mirror.dataDir, 'tmp'))).filter(isWorkspace)).toEqual([])
  })

  test('whatever fails, no workspace stays', async () => {
    await using mirror = await start()
    for (const behaviour of [
      { drop: true },
      { status: 503 },
      { torn: 0.5 },
      { status: 200, body: 'no git' },
    ] as const) {
      using _fault = origin.fault({ kind: 'git', method: 'POST' }, behaviour)
      const answer = await refusalOf(mirror, own('acme/net.git?ref=v1.0.0'))
      expect([502, 504]).toContain(answer.status)
      expect(answer.json().code).toMatch(/^UPSTREAM_(?:UNREACHABLE|STATUS|INVALID|TIMEOUT)$/)
    }
    expect((await readdir(join(mirror.dataDir, 'tmp'))).filter(isWorkspace)).toEqual([])
    expect(await processesOf(mirror)).toEqual([])
  })

  test('a connection that broke is tried again', async () => {
    await using mirror = await start({ upstream: { retries: 2 } })
    using dropped = origin.fault({ kind: 'git', method: 'POST', times: 1 }, { drop: true })
    const module = publish(own('acme/net.git?ref=v1.0.0'))
    locationOf(await askModule(mirror, module, '1.0.0'), module, '1.0.0')
    expect(dropped.struck).toBe(1)
  })
})

function isWorkspace(name: string): boolean {
  return name.startsWith('work-')
}

/** The programs that work for a mirror: those whose home is a workspace of its data folder. */
async function processesOf({ dataDir }: TestMirror): Promise<{ command: string; environment: string }[]> {
  const found: { command: string; environment: string }[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
    const environment = await read('environ')
    if (environment.includes(`HOME=${join(dataDir, 'tmp')}/`))
      found.push({ command: await read('cmdline'), environment })
  }
  return found
}
