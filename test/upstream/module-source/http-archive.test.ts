import { createHash } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseRemoteSource } from '../../../src/protocol/module-source.ts'
import { DiskWorkspaces } from '../../../src/store/disk/workspaces.ts'
import type { OriginClient } from '../../../src/upstream/http-client.ts'
import { openHttpArchive } from '../../../src/upstream/module-source/http-archive.ts'
import type { ModuleTree } from '../../../src/upstream/module-upstream.ts'
import type { ArchivePiece } from '../../../src/upstream/provider-upstream.ts'
import { type Files, SourceFolder } from './archive-fixture.ts'

const LIMITS = { downloadBytes: 1_000_000, unpackedBytes: 10_000_000, files: 100 }
const FILES: Files = { 'top/main.tf': '# main\n', 'top/sub/a.tf': '# a\n', 'top/sub/link.tf': { link: '../main.tf' } }

let work: SourceFolder
beforeEach(async () => {
  work = await SourceFolder.make()
  await mkdir(join(work.path, 'tmp'))
})
afterEach(() => work[Symbol.asyncDispose]())

/** A client that gives these pieces, and notes what it was asked. */
function clientOf(pieces: readonly ArchivePiece[], asked: unknown[] = []): OriginClient {
  const stream = async function* () {
    yield* pieces
  }
  return {
    openArchive: async (request) => {
      asked.push({ url: String(request.url), trusted: request.trusted, maxBytes: request.maxBytes })
      return Object.assign(stream(), { size: undefined })
    },
    fetchDocument: () => Promise.reject(new Error('not asked here')),
    close: async () => undefined,
  }
}

function open(location: string, client: OriginClient, trusted = false): Promise<ModuleTree> {
  const source = parseRemoteSource(location)
  if (source.kind !== 'http-archive') throw new Error('not an archive')
  const workspaces = new DiskWorkspaces(join(work.path, 'tmp'))
  const request = { signal: AbortSignal.timeout(30_000), hops: [], trusted }
  return openHttpArchive(source, { client, workspaces, limits: LIMITS }, request)
}

async function contents(tree: ModuleTree): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [path, file] of tree.files) {
    let text = ''
    for await (const bytes of file.read()) text += Buffer.from(bytes).toString()
    found[path] = text
  }
  return found
}

const bytes = (piece: Uint8Array): ArchivePiece => ({ kind: 'bytes', bytes: Buffer.from(piece) })

async function archiveOf(files: Files): Promise<Buffer> {
  await using folder = await SourceFolder.make(files)
  return folder.run('tar', '-cz', 'top')
}

describe('openHttpArchive', () => {
  it('gives the files as a tree, with the digest of what came; disposing leaves nothing behind', async () => {
    const archive = await archiveOf(FILES)
    const asked: unknown[] = []
    const tree = await open('https://h.test/x?archive=tgz&token=a%2Fb', clientOf([bytes(archive)], asked), true)
    expect(asked).toEqual([{ url: 'https://h.test/x?token=a%2Fb', trusted: true, maxBytes: LIMITS.downloadBytes }])
    expect(tree.revision).toEqual({ kind: 'archive', digest: createHash('sha256').update(archive).digest('hex') })
    const expected = { 'top/main.tf': '# main\n', 'top/sub/a.tf': '# a\n', 'top/sub/link.tf': '# main\n' }
    expect(await contents(tree)).toEqual(expected)
    expect(await contents(tree)).toEqual(expected)
    await tree[Symbol.asyncDispose]()
    expect(await readdir(join(work.path, 'tmp'))).toEqual([])
  })

  it('takes the top folder off where the location ends in //*', async () => {
    await using tree = await open('https://h.test/x.tgz//*/sub', clientOf([bytes(await archiveOf(FILES))]))
    expect([...tree.files.keys()]).toEqual(['main.tf', 'sub/a.tf', 'sub/link.tf'])
  })

  it('begins anew where the download had to', async () => {
    const archive = await archiveOf(FILES)
    const pieces = [bytes(Buffer.alloc(50_000)), { kind: 'restart' } as const, bytes(archive)]
    const sum = createHash('md5').update(archive).digest('hex')
    await using tree = await open(`https://h.test/x.tgz?checksum=md5:${sum}`, clientOf(pieces))
    expect([...tree.files.keys()]).toHaveLength(3)
  })

  it('holds the checksum that the registry states', async () => {
    const archive = await archiveOf(FILES)
    for (const algorithm of ['md5', 'sha1', 'sha256', 'sha512']) {
      const sum = createHash(algorithm).update(archive).digest('hex')
      await using tree = await open(`https://h.test/x.tgz?checksum=${sum}`, clientOf([bytes(archive)]))
      expect(tree.files.size).toBe(3)
      const wrong = open(
        `https://h.test/x.tgz?checksum=${algorithm}:${sum.replace(/./g, '0')}`,
        clientOf([bytes(archive)]),
      )
      await expect(wrong).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH', fields: { actual: sum } })
    }
  })

  it.each([
    ['a web page', [bytes(Buffer.from('<html>'))], 'MODULE_INVALID'],
    ['nothing', [], 'MODULE_INVALID'],
  ])('refuses %s, and leaves nothing behind', async (_, pieces, code) => {
    await expect(open('https://h.test/x.tgz', clientOf(pieces))).rejects.toMatchObject({ code })
    expect(await readdir(join(work.path, 'tmp'))).toEqual([])
  })
})
