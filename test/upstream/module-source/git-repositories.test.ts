import { execFileSync } from 'node:child_process'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../../src/log.ts'
import { type GitSource, parseRemoteSource } from '../../../src/protocol/module-source.ts'
import { DiskWorkspaces } from '../../../src/store/disk/workspaces.ts'
import { GitRepositories } from '../../../src/upstream/module-source/git/git-repositories.ts'
import type { ModuleTree } from '../../../src/upstream/module-upstream.ts'
import { SourceFolder } from './archive-fixture.ts'
import { GitRepository } from './git-source-fixture.ts'

const LIMITS = { downloadBytes: 10_000_000, unpackedBytes: 10_000_000, files: 100 }

const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()

let work: SourceFolder
let repository: GitRepository
let first: string
let second: string

beforeAll(async () => {
  work = await SourceFolder.make()
  await mkdir(join(work.path, 'tmp'))
  repository = await GitRepository.make()
  first = await repository.commit(
    {
      'main.tf': '# one\n',
      'run.sh': { run: '#!/bin/sh\n' },
      'modules/a/main.tf': '# a\r\n',
      'modules/a/link.tf': { link: '../../main.tf' },
      'up -> here': 'odd name',
      '.gitattributes': '*.tf text eol=lf\nsecret.txt export-ignore\n*.bin filter=lfs\n',
      'secret.txt': '$Id$\n',
    },
    { tag: 'v1.0.0' },
  )
  second = await repository.commit({ 'main.tf': '# two\n' }, { annotated: 'v2.0.0' })
  repository.git('branch', 'feature/x')
  repository.git('branch', 'v1.0.0')
})
afterAll(async () => {
  await repository[Symbol.asyncDispose]()
  await work[Symbol.asyncDispose]()
})

function repositories(more: Partial<ConstructorParameters<typeof GitRepositories>[0]> = {}): GitRepositories {
  return new GitRepositories({
    urlRules: () => undefined,
    dial: () => Promise.reject(new Error('no network here')),
    credentials: new Map(),
    ca: [],
    userAgent: 'test',
    workspaces: new DiskWorkspaces(join(work.path, 'tmp')),
    limits: LIMITS,
    idleTimeoutMs: 60_000,
    retries: 0,
    observer: {
      sending: () => undefined,
      answered: () => undefined,
      received: () => undefined,
      retried: () => undefined,
    },
    log: silentLog(),
    allowFile: true,
    ...more,
  })
}

function open(location: string, more: Parameters<typeof repositories>[0] = {}): Promise<ModuleTree> {
  return repositories(more).open(parseRemoteSource(location) as GitSource, AbortSignal.timeout(30_000))
}

async function contents(tree: ModuleTree): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [path, file] of tree.files) {
    let text = ''
    for await (const bytes of file.read()) text += Buffer.from(bytes).toString()
    found[path] = file.executable ? `x ${text}` : text
  }
  return found
}

describe('GitRepositories', () => {
  it('reads the files of a commit as they were committed: no filter, no line ends, no export rules', async () => {
    await using tree = await open(repository.source('?ref=v1.0.0'))
    expect(await contents(tree)).toEqual({
      '.gitattributes': '*.tf text eol=lf\nsecret.txt export-ignore\n*.bin filter=lfs\n',
      'main.tf': '# one\n',
      'modules/a/link.tf': '# one\n',
      'modules/a/main.tf': '# a\n',
      'run.sh': 'x #!/bin/sh\n',
      'secret.txt': '$Id$\n',
      'up -> here': 'odd name',
    })
  })

  it.each([
    ['a tag, before a branch of the same name', '?ref=v1.0.0', () => first, false],
    ['an annotated tag', '?ref=v2.0.0', () => second, false],
    ['a tag by more of its name', '?ref=tags/v1.0.0', () => first, false],
    ['a tag by its whole name', '?ref=refs/tags/v1.0.0', () => first, false],
    ['a branch', '?ref=main', () => second, true],
    ['a branch with a slash', '?ref=feature/x', () => second, true],
    ['a branch by its whole name', '?ref=refs/heads/v1.0.0', () => second, true],
    ['no ref', '', () => second, true],
  ])('finds %s', async (_, query, commit, moving) => {
    await using tree = await open(repository.source(query))
    expect(tree.revision).toEqual({ kind: 'commit', commit: commit(), moving })
  })

  it('finds commits by their whole and short ids', async () => {
    for (const id of [first, first.slice(0, 8)]) {
      await using tree = await open(repository.source(`?ref=${id}`))
      expect(tree.revision).toEqual({ kind: 'commit', commit: first, moving: false })
    }
  })

  it('fetches all where the server gives no commit alone', async () => {
    repository.git('config', 'uploadpack.allowReachableSHA1InWant', 'false')
    await using tree = await open(repository.source(`?ref=${first}`))
    expect(tree.revision).toMatchObject({ commit: first })
    repository.git('config', 'uploadpack.allowReachableSHA1InWant', 'true')
  })

  it('tells which commit a tag or branch names now, and nothing for a commit', async () => {
    const ask = (query: string) =>
      repositories().currentCommit(
        parseRemoteSource(repository.source(query)) as GitSource,
        AbortSignal.timeout(30_000),
      )
    expect(await ask('?ref=v1.0.0')).toBe(first)
    expect(await ask('?ref=main')).toBe(second)
    expect(await ask(`?ref=${first}`)).toBeUndefined()
  })

  it('says which ref is not there', async () => {
    await expect(open(repository.source('?ref=v9'))).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: expect.stringContaining('neither tag, branch nor commit "v9"'),
    })
    await expect(open(repository.source(`?ref=${'0'.repeat(40)}`))).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' })
  })

  it('brings submodules along, nested and by relative addresses', async () => {
    await using inner = await GitRepository.make()
    await inner.commit({ 'inner.tf': '# inner\n' })
    await using middle = await GitRepository.make()
    middle.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `file://${inner.path}`, 'deep')
    await middle.commit({ 'middle.tf': '# middle\n' })
    await using outer = await GitRepository.make()
    outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `file://${middle.path}`, 'sub/m')
    const relative = `../${middle.path.split('/').at(-1)}`
    outer.git('config', '--file', '.gitmodules', 'submodule.sub/m.url', relative)
    await outer.commit({ 'link.tf': { link: 'sub/m/deep/inner.tf' } })
    await using tree = await open(outer.source())
    expect(Object.keys(await contents(tree))).toEqual([
      '.gitmodules',
      'link.tf',
      'sub/m/.gitmodules',
      'sub/m/deep/inner.tf',
      'sub/m/middle.tf',
    ])
  })

  it('takes histories in which dates and names are odd, and refuses what could do harm', async () => {
    await using odd = await GitRepository.make()
    const tree = (await odd.commit({ 'main.tf': '# odd\n' })) && odd.git('rev-parse', 'HEAD^{tree}')
    const write = (type: string, body: string) => {
      const file = { object: body }
      return odd.folder.write(file).then(() => odd.git('hash-object', '-t', type, '--literally', '-w', 'object'))
    }
    const faulty = await write('commit', `tree ${tree}\nauthor a<a@b> 01 +9999999\ncommitter a <a> 1 +0000\n\nodd\n`)
    odd.git('tag', 'odd', faulty)
    await using found = await open(odd.source('?ref=odd'))
    expect([...found.files.keys()]).toEqual(['main.tf'])

    const blob = odd.git('rev-parse', 'HEAD:main.tf')
    await odd.folder.write({ entries: `100644 blob ${blob}\t.GIT\n` })
    const evil = odd.folder.run('sh', '-c', 'git mktree < entries').toString().trim()
    odd.git('tag', 'evil', odd.git('commit-tree', '-m', 'evil', evil))
    await expect(open(odd.source('?ref=evil'))).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: expect.stringContaining('hasDotgit'),
    })
  })

  it('refuses a submodule without an address, as clients do', async () => {
    await using stray = await GitRepository.make()
    await stray.folder.write({ 'main.tf': '# stray\n' })
    stray.git('update-index', '--add', '--cacheinfo', `160000,${first},nested`)
    stray.git('commit', '--quiet', '-m', 'stray')
    await expect(open(stray.source())).rejects.toMatchObject({
      code: 'MODULE_INVALID',
      message: expect.stringContaining('a submodule without an address at "nested"'),
    })
  })

  it('holds the limits, and leaves nothing behind whatever happens', async () => {
    await expect(open(repository.source(), { limits: { ...LIMITS, files: 2 } })).rejects.toThrow(/more than 2 files/)
    await expect(open(repository.source(), { limits: { ...LIMITS, unpackedBytes: 9 } })).rejects.toThrow(
      /more than 9 bytes/,
    )
    await expect(open('git::file:///nowhere/at/all')).rejects.toMatchObject({ code: 'UPSTREAM_STATUS' })
    expect(await readdir(join(work.path, 'tmp'))).toEqual([])
  })

  it('says that git is missing where it is, and for ssh that ssh is', async () => {
    vi.stubEnv('PATH', '/nonexistent')
    try {
      await expect(open(repository.source())).rejects.toMatchObject({
        code: 'MODULE_SOURCE_REFUSED',
        message: expect.stringContaining('no `git` on the machine'),
      })
      const onlyGit = await SourceFolder.make({ git: { link: git } })
      await using _onlyGit = onlyGit
      vi.stubEnv('PATH', onlyGit.path)
      const known = { sshKeyFile: import.meta.filename, knownHostsFile: import.meta.filename }
      const credentials = new Map([['git.example.test', known]])
      await expect(open('git::ssh://git@git.example.test/a.git', { credentials })).rejects.toMatchObject({
        code: 'MODULE_SOURCE_REFUSED',
        message: expect.stringContaining('no `ssh` on the machine'),
      })
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('fetches files of this machine in tests only', async () => {
    await expect(open(repository.source(), { allowFile: false })).rejects.toMatchObject({
      code: 'MODULE_SOURCE_REFUSED',
      fields: { scheme: 'git::file' },
    })
  })

  it('ends at once, with all that it started, when it is told to', async () => {
    const controller = new AbortController()
    const running = repositories().open(parseRemoteSource(repository.source()) as GitSource, controller.signal)
    controller.abort(new Error('stop'))
    await expect(running).rejects.toThrow('stop')
    expect(await readdir(join(work.path, 'tmp'))).toEqual([])
  })
})
