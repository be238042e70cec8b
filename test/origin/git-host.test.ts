import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { gitHttpBackend } from './git-host.ts'
import { startOrigin, type TestOrigin } from './origin.ts'
import { SshHost, sshServer } from './ssh-host.ts'

const run = promisify(execFile)

let folder: string
let origin: TestOrigin
let repository: GitRepository

describe.skipIf(gitHttpBackend() === undefined)('the git host of the test origin', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'test-git-host-'))
    origin = await startOrigin()
    repository = await GitRepository.make()
    await repository.commit({ 'main.tf': '# one\n' }, { tag: 'v1.0.0' })
    await writeFile(join(folder, 'ca.pem'), origin.caPem)
  })
  afterAll(async () => {
    await origin[Symbol.asyncDispose]()
    await repository[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })
  beforeEach(() => origin.reset())

  async function clone(name: string, ...options: string[]): Promise<string> {
    const target = await mkdtemp(join(folder, 'clone-'))
    const url = `${origin.url()}git/${name}.git`
    await run('git', ['-c', `http.sslCAInfo=${folder}/ca.pem`, 'clone', '--quiet', ...options, url, target], {
      env: { PATH: process.env.PATH, GIT_TERMINAL_PROMPT: '0' },
      timeout: 20_000,
    })
    return await readFile(join(target, 'main.tf'), 'utf8')
  }

  test.each([
    ['smart', '--depth=1', 1],
    ['v0', '--depth=1', 0],
    ['dumb', '--no-single-branch', 0],
  ] as const)('is cloned by git itself (%s)', async (style, option, fetches) => {
    origin.serveGit('acme/net', { path: repository.path, style })
    expect(await clone('acme/net', option)).toBe('# one\n')
    expect([origin.gitFetches, origin.count('git acme/net') > 0]).toEqual([fetches, true])
  })

  test('a dumb one knows no shallow fetch', async () => {
    origin.serveGit('acme/net', { path: repository.path, style: 'dumb' })
    await expect(clone('acme/net', '--depth=1')).rejects.toThrow(/shallow/)
  })

  test('a private one wants its login', async () => {
    origin.serveGit('acme/net', { path: repository.path, login: 'me:secret' })
    await expect(clone('acme/net')).rejects.toThrow(/could not read Username/)
    await expect(clone('acme/nothing')).rejects.toThrow(/not found/)
  })

  test('suffers faults', async () => {
    origin.serveGit('acme/net', { path: repository.path })
    using dropped = origin.fault({ kind: 'git', repository: 'acme/net', method: 'POST' }, { torn: 0.5 })
    await expect(clone('acme/net')).rejects.toThrow(/git/)
    expect(dropped.struck).toBeGreaterThan(0)
  })
})

test.skipIf(sshServer() === undefined)('the ssh host lets git in with its key, and nothing else', async () => {
  await using host = await SshHost.start()
  await using served = await GitRepository.make()
  await served.commit({ 'main.tf': '# one\n' })
  const ssh = ['ssh', '-o', `UserKnownHostsFile=${host.knownHostsFile}`, '-o', 'BatchMode=yes', '-F', '/dev/null']
  const list = (...identity: string[]) =>
    run('git', ['ls-remote', host.source(served.path).slice('git::'.length)], {
      env: { PATH: process.env.PATH, GIT_SSH_COMMAND: [...ssh, ...identity].join(' ') },
      timeout: 20_000,
    })
  expect((await list('-i', host.keyFile)).stdout).toContain('refs/heads/main')
  expect(host.logins).toBe(1)
  await expect(list('-o', 'IdentityFile=/dev/null', '-o', 'IdentitiesOnly=yes')).rejects.toThrow(/denied/)
})
