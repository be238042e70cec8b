import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ModuleCallsReader, type ReadConfiguration } from '../../../src/mirror/care/module-calls-reader.ts'
import { packModule } from '../../../src/mirror/module-archive.ts'
import type { ModuleRecord } from '../../../src/mirror/module-record.ts'
import { assertSha256, type Sha256 } from '../../../src/protocol/package-hash.ts'
import { parseProviderAddressText } from '../../../src/protocol/provider-address.ts'
import { assertVersion } from '../../../src/protocol/version.ts'
import { MemoryBlobStore } from '../../../src/store/memory/memory-blob-store.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import { recordingLog } from '../parts-fixture.ts'

/** One line a fact: `module SOURCE [VERSION]`, `provider ADDRESS [CONSTRAINT]`; anything else is a problem. */
const readLines: ReadConfiguration = async (files) => {
  const lines = [...files].flatMap(([file, text]) => text.split('\n').map((line) => ({ file, words: line.split(' ') })))
  const facts = (kind: string) =>
    lines.filter(({ words }) => words[0] === kind).map(({ words: [, source = '', ...rest] }) => ({ source, rest }))
  return {
    modules: facts('module').map(({ source, rest }) => ({ source, version: rest.join(' ') || undefined })),
    providers: facts('provider').map(({ source, rest }) => ({
      source: parseProviderAddressText(source),
      constraint: rest.join(' ') || undefined,
    })),
    problems: facts('problem').map(() => ({ file: 'main.tf', line: 1, reason: 'odd' })),
  }
}

async function* once(bytes: Buffer) {
  yield bytes
}

async function pack(blobs: MemoryBlobStore, files: Readonly<Record<string, string | Buffer>>): Promise<Sha256> {
  await using blob = await blobs.create()
  const entries = Object.entries(files).map(([path, content]) => {
    const bytes = Buffer.from(content)
    return [path, { size: bytes.length, executable: false, read: () => once(bytes) }] as const
  })
  const revision = { kind: 'archive', digest: '' } as const
  const tree = { revision, files: new Map(entries), notes: [], [Symbol.asyncDispose]: async () => undefined }
  await packModule(tree, blob, new AbortController().signal)
  return assertSha256((await blob.commit()).digest)
}

function createReader(readConfiguration: ReadConfiguration = readLines) {
  const blobs = new MemoryBlobStore()
  const records = new MemoryRecordStore()
  const { log, lines } = recordingLog()
  let read = 0
  const counting: ReadConfiguration = (...args) => {
    read += 1
    return readConfiguration(...args)
  }
  const create = () =>
    new ModuleCallsReader({
      ...{ blobs, records, log, readConfiguration: counting, shutdown: new AbortController().signal },
    })
  const hold = async (files: Readonly<Record<string, string | Buffer>>, subfolder = ''): Promise<ModuleRecord> =>
    recordOf(await pack(blobs, files), subfolder)
  return { blobs, records, lines, hold, create, reader: create(), reads: () => read }
}

function recordOf(digest: Sha256, subfolder = ''): ModuleRecord {
  const state: ModuleRecord['state'] = {
    ...{ digest, size: 1, tarDigest: digest, unpackedBytes: 1, files: 1, source: '', subfolder, cachedAt: '' },
    revision: { kind: 'archive', digest },
  }
  return { format: 1, address: 'r', version: assertVersion('1.0.0'), spelling: '1.0.0', state, earlier: [] }
}

const aws = 'registry.terraform.io/hashicorp/aws'
const module = {
  'main.tf': `module ./modules/a\nmodule acme/net/aws ~> 1.0\nprovider ${aws} >= 5.0`,
  'versions.tofu': 'module git::https://user:secret@git.example.test/x.git?ref=v1&token=hush',
  'modules/a/main.tf': `module ../../internal\nprovider ${aws} < 6.0`,
  'internal/main.tf.json': 'module corp.example/acme/deep/aws//sub 2.0.0',
  'modules/b/main.tf': 'provider registry.terraform.io/hashicorp/random',
  'modules/b/nested/main.tf': 'provider registry.terraform.io/hashicorp/null',
  'examples/all/main.tf': 'provider registry.terraform.io/hashicorp/google\nmodule ../..',
  'README.md': 'module acme/readme/aws',
}

describe('what a module calls', () => {
  it('is what its root and its published submodules lead to, each by the versions that all of it takes', async () => {
    const { reader, hold } = createReader()
    expect(await reader.read(await hold(module))).toEqual({
      modules: [
        { source: 'corp.example/acme/deep/aws//sub', version: '2.0.0' },
        { source: 'registry.terraform.io/acme/net/aws', version: '~> 1.0' },
      ],
      otherSources: ['git::https://git.example.test/x.git'],
      providers: [
        { source: aws, version: '< 6.0' },
        { source: aws, version: '>= 5.0, < 6.0' },
        { source: 'registry.terraform.io/hashicorp/random', version: null },
      ],
    })
  })

  it.each([
    ['', [{ source: aws, version: '>= 5.0, < 6.0' }]],
    ['modules/a', [{ source: aws, version: '< 6.0' }]],
    ['modules/b/nested', [{ source: 'registry.terraform.io/hashicorp/null', version: null }]],
  ])('by a call of //%s is what that folder alone leads to', async (subfolder, providers) => {
    const { reader, hold } = createReader()
    expect(await reader.read(await hold(module), subfolder)).toMatchObject({ providers })
  })

  it('below the folder that its location names is told of that folder', async () => {
    const { reader, hold } = createReader()
    const record = await hold(module, 'modules/b')
    expect(await reader.read(record)).toMatchObject({
      modules: [],
      providers: [{ source: 'registry.terraform.io/hashicorp/random', version: null }],
    })
    expect(await reader.read(record, 'nested')).toMatchObject({
      providers: [{ source: 'registry.terraform.io/hashicorp/null', version: null }],
    })
  })

  it('is not known of a folder that is not there, nor of an archive that is not held', async () => {
    const { reader, hold } = createReader()
    expect(await reader.read(await hold(module), 'modules/nope')).toBeNull()
    expect(await reader.read(recordOf(assertSha256('0'.repeat(64))))).toBeNull()
  })

  it('is nothing if there is no configuration in it', async () => {
    const { reader, hold } = createReader()
    const nothing = { modules: [], otherSources: [], providers: [] }
    expect(await reader.read(await hold({ 'README.md': '' }))).toEqual(nothing)
  })
})

describe('an archive', () => {
  it('is read once, by the next process too, however many ask', async () => {
    const parts = createReader()
    const record = await parts.hold({ 'main.tf': 'module acme/net/aws' })
    const answers = await Promise.all([parts.reader.read(record), parts.reader.read(record)])
    expect(answers[0]).toEqual(answers[1])
    expect(await parts.create().read(record)).toEqual(answers[0])
    expect(parts.reads()).toBe(1)
    await parts.reader.forget(record.state.digest)
    await parts.reader.read(record)
    expect(parts.reads()).toBe(2)
  })

  it('that comes back after it was lost is read then', async () => {
    const parts = createReader()
    const record = await parts.hold({ 'main.tf': 'module acme/net/aws' })
    await parts.blobs.delete(record.state.digest)
    expect(await parts.reader.read(record)).toBeNull()
    await parts.hold({ 'main.tf': 'module acme/net/aws' })
    expect(await parts.reader.read(record)).toMatchObject({ modules: [{ version: null }] })
  })

  it('that is none is told once and remembered as unreadable', async () => {
    const { blobs, reader, create, lines } = createReader()
    const { digest } = await blobs.put(randomBytes(5_000))
    const record = recordOf(assertSha256(digest))
    expect([await reader.read(record), await reader.read(record), await create().read(record)]).toEqual(
      Array(3).fill(null),
    )
    expect(lines).toMatchObject([{ reason: 'its archive is damaged' }])
  })

  it('with more configuration than anybody writes is not read', async () => {
    const { reader, hold } = createReader()
    const many = Object.fromEntries(Array.from({ length: 5_001 }, (_, index) => [`f${index}.tf`, '']))
    expect(await reader.read(await hold(many))).toBeNull()
    const large = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`f${index}.tf`, ' '.repeat(999_999)]))
    expect(await reader.read(await hold(large))).toBeNull()
  })

  it('with a file that is too large to be configuration is read without it', async () => {
    const { reader, hold } = createReader()
    const record = await hold({
      'big.tf': `module acme/big/aws\n${' '.repeat(1_000_000)}`,
      'main.tf': 'module acme/net/aws',
    })
    expect(await reader.read(record)).toMatchObject({ modules: [{ source: 'registry.terraform.io/acme/net/aws' }] })
  })

  it('whose calls go round in a circle, or out of it, or to names of JavaScript, is read to its end', async () => {
    const { reader, hold } = createReader()
    const record = await hold({
      'main.tf': 'module ./modules/a\nmodule ./__proto__\nmodule ./constructor\nmodule ../../etc\nmodule ./gone',
      'modules/a/main.tf': 'module ../..\nmodule ../a',
      '__proto__/main.tf': 'module acme/proto/aws',
    })
    expect(await reader.read(record)).toEqual({
      modules: [{ source: 'registry.terraform.io/acme/proto/aws', version: null }],
      otherSources: [],
      providers: [],
    })
  })
})
