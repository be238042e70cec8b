import { readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gitHttpBackend } from '../origin/git-host.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { bufferBody, fileReply } from '../origin/reply.ts'
import { SshHost, sshServer } from '../origin/ssh-host.ts'
import { SourceFolder } from '../upstream/module-source/archive-fixture.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import {
  askModule,
  askModuleVersions,
  bothServicesConfig,
  createModuleWorkspace,
  init,
  installedModules,
  localUrl,
  type ModuleCall,
} from './module-door.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'

/*
 * Modules and the real CLI: every form in which an origin says where files are, called in one configuration; then the
 * same without the origin and its git hosts.
 */

const TOKEN = 'token-of-the-git-host'
const ready = [terraformAvailable(), gitHttpBackend(), sshServer()].every((program) => program !== undefined)

let origin: TestOrigin
let mirror: TestMirror
let sshHost: SshHost
let opened: AsyncDisposableStack
let calls: Record<string, ModuleCall>

/** What each call must lead to: text of a file in the folder that the CLI gives the module. */
const wanted: Record<string, string> = {}

/** Publishes version 1.0.0 of `acme/NAME/aws` and calls it. */
function publish(
  name: string,
  location: string,
  more: { answer?: 'header200' | 'json'; spelling?: string; subfolder?: string; wants: string },
): void {
  const { answer, spelling = '1.0.0', subfolder = '', wants } = more
  origin.publishModule({ module: `acme/${name}/aws`, version: spelling, location, ...(answer && { answer }) })
  calls[name] = { source: `${HOST}/acme/${name}/aws${subfolder}`, version: '1.0.0' }
  wanted[name] = wants
}

beforeAll(async () => {
  if (!ready) return
  opened = new AsyncDisposableStack()
  origin = opened.use(await startOrigin())
  sshHost = opened.use(await SshHost.start())
  calls = {}
  await publishArchives()
  await publishRepositories()
  await publishNested()
  mirror = opened.use(
    await startMirror({
      origin,
      config: {
        origins: { [HOST]: { allowPrivateAddresses: true } },
        hosts: {
          [origin.address]: { token: TOKEN, caFile: './origin-ca.pem' },
          [`127.0.0.1:${sshHost.port}`]: { sshKeyFile: sshHost.keyFile, knownHostsFile: sshHost.knownHostsFile },
        },
      },
    }),
  )
})
afterAll(async () => {
  if (ready) await opened.disposeAsync()
})

async function publishArchives(): Promise<void> {
  await using source = await SourceFolder.make({
    'top/main.tf': '# top\n',
    'top/link.tf': { link: 'sub/main.tf' },
    'top/run.sh': { run: '#!/bin/sh\n' },
    'top/sub/main.tf': '# sub\n',
    'top/sub/deep/main.tf': '# deep\n',
    'top/a%20b/main.tf': '# as written\n',
    'top/a b/main.tf': '# decoded\n',
  })
  const tar = (letter: string, ...what: string[]) => bufferBody(source.run('tar', `-c${letter}`, ...what))
  const zip = "import shutil,sys; print(end='')\nshutil.make_archive('z', 'zip', 'top')"
  source.run('python3', '-c', zip)
  const pages: Record<string, ReturnType<typeof bufferBody>> = {
    '/files/a.zip': bufferBody(source.run('cat', 'z.zip')),
    '/files/a.tar.gz': tar('z', '-C', 'top', '.'),
    '/files/a.tar.bz2': tar('j', '-C', 'top', '.'),
    '/files/a.tar.xz': tar('J', '-C', 'top', '.'),
    '/files/tarball/v1': tar('z', 'top'),
    '/v1/modules/acme/dotted/aws/1.0.0/archive.tar.gz': tar('z', '-C', 'top', '.'),
    '/v1/modules/acme/up/aws/archive': tar('z', '-C', 'top', '.'),
  }
  for (const [path, body] of Object.entries(pages)) origin.page(HOST, path, fileReply(body, 'etag'))
  const files = (name: string) => `${origin.url()}files/${name}`

  publish('zip', files('a.zip'), { wants: '# top\n' })
  publish('targz', '/files/a.tar.gz', { wants: '# top\n' })
  publish('tarbz', '/files/a.tar.bz2', { answer: 'header200', wants: '# top\n' })
  publish('tarxz', '/files/a.tar.xz', { answer: 'json', spelling: 'v1.0.0', wants: '# top\n' })
  publish('dotted', './archive.tar.gz', { wants: '# top\n' })
  publish('up', '../archive?archive=tgz', { wants: '# top\n' })
  publish('glob', files('tarball/v1//*?archive=tar.gz'), { wants: '# top\n' })
  publish('globsub', files('tarball/v1//*/sub?archive=tar.gz'), { wants: '# sub\n' })
  publish('location', '/files/a.tar.gz//sub', { wants: '# sub\n' })
  publish('encoded', '/files/a.tar.gz//a%20b', { wants: '# as written\n' })
  publish('caller', '/files/a.tar.gz', { subfolder: '//sub/deep', wants: '# deep\n' })
  publish('both', '/files/a.tar.gz//sub', { subfolder: '//deep', wants: '# deep\n' })
}

async function publishRepositories(): Promise<void> {
  const inner = opened.use(await GitRepository.make())
  await inner.commit({ 'main.tf': '# of a submodule\n' })
  const net = opened.use(await GitRepository.make())
  const first = await net.commit({ 'main.tf': '# one\n', 'run.sh': { run: '#!/bin/sh\n' } }, { tag: 'v1.0.0' })
  net.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `file://${inner.path}`, 'inner')
  net.git('config', '--file', '.gitmodules', 'submodule.inner.url', '../inner.git')
  await net.commit(
    {
      'main.tf': '# two\n',
      'modules/a/main.tf': { link: '../../main.tf' },
      linked: { link: 'modules/a' },
    },
    { annotated: 'v2.0.0+build' },
  )
  origin.serveGit('acme/net', { path: net.path })
  origin.serveGit('acme/inner', { path: inner.path })
  origin.serveGit('acme/dumb', { path: inner.path, style: 'dumb' })
  origin.serveGit('acme/old', { path: net.path, style: 'v0' })
  origin.serveGit('acme/private', { path: net.path, login: `x-access-token:${TOKEN}` })
  const git = (name: string, rest: string) => `git::https://${HOST}/git/acme/${name}.git${rest}`
  const elsewhere = (name: string, rest: string) => `git::${origin.url()}git/acme/${name}.git${rest}`

  publish('tag', git('net', '?ref=v1.0.0'), { wants: '# one\n' })
  publish('plus', git('net', '?ref=v2.0.0+build'), { answer: 'json', wants: '# two\n' })
  publish('branch', git('net', '?ref=main'), { wants: '# two\n' })
  publish('none', git('net', ''), { wants: '# two\n' })
  publish('commit', git('net', `?ref=${first}`), { wants: '# one\n' })
  publish('short', git('old', `?ref=${first.slice(0, 9)}`), { wants: '# one\n' })
  publish('depth', git('net', '?depth=1&ref=v1.0.0'), { wants: '# one\n' })
  publish('folder', git('net', '//modules/a?ref=v2.0.0+build'), { wants: '# two\n' })
  publish('linked', git('net', '//linked?ref=v2.0.0+build'), { wants: '# two\n' })
  publish('behind', git('net', '?ref=v2.0.0+build//modules'), { subfolder: '//a', wants: '# two\n' })
  publish('submodule', git('net', '?ref=main'), { subfolder: '//inner', wants: '# of a submodule\n' })
  publish('dumb', git('dumb', ''), { wants: '# of a submodule\n' })
  publish('old', git('old', '?ref=v1.0.0'), { wants: '# one\n' })
  publish('token', elsewhere('private', '?ref=v1.0.0'), { wants: '# one\n' })
  publish('ssh', sshHost.source(net.path, '?ref=v1.0.0'), { wants: '# one\n' })
}

async function publishNested(): Promise<void> {
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  const outer = opened.use(await GitRepository.make())
  await outer.commit(
    {
      'main.tf':
        `terraform {\n  required_providers {\n    widget = { source = "${HOST}/acme/widget" }\n  }\n}\n` +
        `module "inner" {\n  source = "${HOST}/acme/both/aws//deep"\n  version = "1.0.0"\n}\n`,
    },
    { tag: 'v1.0.0' },
  )
  origin.serveGit('acme/outer', { path: outer.path })
  const main = await readFile(join(outer.path, 'main.tf'), 'utf8')
  publish('nested', `git::https://${HOST}/git/acme/outer.git?ref=v1.0.0`, { wants: main })
}

/** `init` of everything at once; all is where it belongs, and comes from the mirror alone. */
async function expectAllInstalled(cliConfig?: string): Promise<void> {
  await using workspace = await createModuleWorkspace(mirror, calls, cliConfig)
  await init(workspace, mirror)
  const folders = await installedModules(workspace)
  const found: Record<string, string> = {}
  for (const name of Object.keys(calls))
    found[name] = await readFile(join(folders[name] ?? 'none', 'main.tf'), 'utf8').catch(String)
  expect(found).toEqual(wanted)
  expect(await readFile(join(folders['nested.inner'] ?? 'none', 'main.tf'), 'utf8')).toBe('# deep\n')
  expect(await workspace.installed()).toEqual([`${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
  // Links are files by now, and what could be run still can.
  await expect(readlink(join(folders.targz ?? '', 'link.tf'))).rejects.toMatchObject({ code: 'EINVAL' })
  expect(await readFile(join(folders.targz ?? '', 'link.tf'), 'utf8')).toBe('# sub\n')
  for (const name of ['zip', 'targz', 'tag', 'ssh']) {
    const { mode } = await stat(join(folders[name] ?? '', 'run.sh'))
    expect(mode & 0o111, name).not.toBe(0)
  }
}

/** What clients get to see of modules, without the archives. */
async function shownOfModules(): Promise<string> {
  const shown: unknown[] = []
  for (const name of Object.keys(calls)) {
    const list = await askModuleVersions(mirror, `acme/${name}/aws`)
    const { headers } = await askModule(mirror, `acme/${name}/aws`, '1.0.0')
    shown.push(list.headers, list.json(), headers)
  }
  return JSON.stringify(shown)
}

describe.skipIf(!ready)('terraform init with modules of every form', () => {
  test('providers by the network mirror, modules by the host block', () => expectAllInstalled(), 120_000)

  test('everything by the host block; nothing is fetched twice', async () => {
    origin.reset()
    await expectAllInstalled(bothServicesConfig(localUrl(mirror)))
    expect([origin.gitFetches, origin.count('archive'), origin.count('module-download')]).toEqual([0, 0, 0])
  })

  test('no answer names another host than the mirror, or holds a URL at all (B50)', async () => {
    expect(await shownOfModules()).not.toMatch(/:\/\/|example\.test|127\.0\.0\.1|git::/)
  })

  test('with the origin and its git hosts stopped, also after a restart', async () => {
    await origin.stop()
    await sshHost.stop()
    await expectAllInstalled()
    await mirror.restart()
    await expectAllInstalled()
    expect(mirror.logLines.filter(({ status }) => Number(status) >= 400)).toEqual([])
  }, 120_000)
})
