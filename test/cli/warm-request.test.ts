import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readWarmRequest, type WarmWishes } from '../../src/cli/warm-request.ts'
import { makeTempFolder } from '../store/temp-folder.ts'

const nothing: WarmWishes = {
  words: [],
  module: [],
  lockFile: [],
  fromFile: [],
  platform: [],
  followModules: true,
  dryRun: false,
}

const wrong = (reason: string) => expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) })

async function writeFiles(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
}

describe('providers and modules', () => {
  test.each([
    ['hashicorp/aws', { source: 'hashicorp/aws', version: 'latest' }],
    ['hashicorp/aws@latest', { source: 'hashicorp/aws', version: 'latest' }],
    ['hashicorp/aws@5.100.0', { source: 'hashicorp/aws', version: '5.100.0' }],
    ['hashicorp/aws@~> 5.0', { source: 'hashicorp/aws', version: '~> 5.0' }],
    ['acme.example/a/b@>= 5.0, < 6.0, != 5.5.0', { source: 'acme.example/a/b', version: '>= 5.0, < 6.0, != 5.5.0' }],
  ])('%s', async (word, provider) => {
    const request = await readWarmRequest({ ...nothing, words: [word], module: [word] })
    expect(request).toMatchObject({ providers: [provider], modules: [provider], configuration: {} })
  })

  test.each([
    // What a shell leaves of hashicorp/aws@~>5.0 and hashicorp/aws@>=5.0, having made files of the rest.
    ['hashicorp/aws@~', "put it in quotes: 'hashicorp/aws@~> 5.0'"],
    ['hashicorp/aws@', "put it in quotes: 'hashicorp/aws@~> 5.0'"],
    ['aws', 'a folder begins with ./ or /'],
    ['hashicorp/aws ~> 5.0', 'expected NAMESPACE/TYPE[@VERSION]'],
  ])('%j is wrong use', async (word, reason) => {
    await expect(readWarmRequest({ ...nothing, words: [word] })).rejects.toThrow(wrong(reason))
  })

  test('come from lists too, with comments, and a wrong line is named', async () => {
    await using folder = await makeTempFolder()
    const file = join(folder.path, 'list')
    await writeFile(file, '# all\nhashicorp/aws@~> 5.0  # the big one\r\n\n  module  a/b/c@1.0.0\nhashicorp/null\n')
    expect(await readWarmRequest({ ...nothing, fromFile: [file] })).toMatchObject({
      providers: [
        { source: 'hashicorp/aws', version: '~> 5.0' },
        { source: 'hashicorp/null', version: 'latest' },
      ],
      modules: [{ source: 'a/b/c', version: '1.0.0' }],
    })
    await writeFile(file, 'hashicorp/aws\nnull\n')
    await expect(readWarmRequest({ ...nothing, fromFile: [file] })).rejects.toThrow(
      wrong(`${file}:2: "null": expected`),
    )
  })

  test('nothing at all, a file that is not there and a bad platform are wrong use', async () => {
    await expect(readWarmRequest(nothing)).rejects.toThrow(wrong('nothing to warm'))
    await expect(readWarmRequest({ ...nothing, lockFile: ['/nonexistent'] })).rejects.toThrow(
      wrong('/nonexistent cannot be read (ENOENT)'),
    )
    const words = ['hashicorp/aws']
    for (const platform of [['linux'], ['all', 'linux_amd64'], ['linux/amd64']]) {
      await expect(readWarmRequest({ ...nothing, words, platform })).rejects.toThrow(wrong('--platform'))
    }
  })

  test('platforms are passed on, and all are a star', async () => {
    const words = ['hashicorp/aws']
    const platform = ['linux_amd64', 'darwin_arm64']
    expect((await readWarmRequest({ ...nothing, words, platform })).platforms).toEqual(platform)
    expect((await readWarmRequest({ ...nothing, words, platform: ['all'] })).platforms).toEqual(['*'])
  })
})

describe('a folder', () => {
  const read = (path: string) => readWarmRequest({ ...nothing, words: [path] })

  test('gives its configuration, the local modules that it leads to, and its lock file; no links', async () => {
    await using folder = await makeTempFolder()
    await writeFiles(folder.path, {
      'envs/prod/main.tf': 'module "net" { source = "./net" }\nmodule "far" {\n  source="../../modules/far/"\n}',
      'envs/prod/more.tf.json': '{ "module": { "x": { "source": "../shared" } } }',
      'envs/prod/open.tofu': '# source = "./not-there"',
      'envs/prod/.terraform.lock.hcl': 'lock',
      'envs/prod/net/main.tf': 'module "shared" { source = "../../shared" }',
      'envs/prod/net/.terraform.lock.hcl': 'another lock',
      'envs/prod/examples/main.tf': 'not called',
      'envs/prod/.terraform/modules/x/main.tf': 'hidden',
      'envs/prod/terraform.tfvars': 'secret = 1',
      'envs/prod/terraform.tfstate': 'secret',
      'envs/shared/main.tf': 'module "registry" { source = "a/b/c" }',
      'modules/far/main.tf': 'module "near" { source = "../near" }',
      'modules/near/main.tf': 'module "far" { source = "../far" }',
      'modules/other/main.tf': 'not called',
    })
    await symlink('/etc/passwd', join(folder.path, 'envs/prod/link.tf'))
    const { configuration, lockFiles } = await read(join(folder.path, 'envs/prod'))
    expect(Object.keys(configuration).sort()).toEqual([
      '../../modules/far/main.tf',
      '../../modules/near/main.tf',
      '../shared/main.tf',
      'main.tf',
      'more.tf.json',
      'net/main.tf',
      'open.tofu',
    ])
    expect(lockFiles).toEqual(['lock'])
  })

  test('that has a lock file alone gives that', async () => {
    await using folder = await makeTempFolder()
    await writeFiles(folder.path, { '.terraform.lock.hcl': 'lock' })
    expect(await read(folder.path)).toMatchObject({ configuration: {}, lockFiles: ['lock'] })
  })

  test('that is not there, is a file, is empty or too large is wrong use', async () => {
    await using folder = await makeTempFolder()
    await expect(read(join(folder.path, 'no'))).rejects.toThrow(wrong('does not exist'))
    await expect(read(folder.path)).rejects.toThrow(wrong('has no Terraform configuration'))
    await writeFiles(folder.path, { file: '', 'big/main.tf': 'x'.repeat(1_000_001) })
    await expect(read(join(folder.path, 'file'))).rejects.toThrow(wrong('is no folder'))
    await expect(read(join(folder.path, 'big'))).rejects.toThrow(wrong('larger than 1000000 bytes'))
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`many/${index}.tf`, '']))
    await writeFiles(folder.path, many)
    await expect(read(join(folder.path, 'many'))).rejects.toThrow(wrong('more than 1000 configuration files'))
  })

  test('of which two are named is wrong use', async () => {
    await expect(readWarmRequest({ ...nothing, words: ['./a', '/b'] })).rejects.toThrow(wrong('one folder at a time'))
  })
})
