import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { MirrorError, redactUrl } from '../../errors.ts'
import type { HttpArchiveSource, SourceChecksum } from '../../protocol/module-source.ts'
import type { OriginClient } from '../http-client.ts'
import type { UpstreamRequest } from '../provider-upstream.ts'
import { type SpoolPlace, writeAll } from './archive/spool.ts'
import { unpackInThread } from './archive/unpack-thread.ts'
import type { ModuleFile, ModuleLimits, ModuleTree } from './module-tree.ts'
import { type LaidOutFile, layOutTree, type TreeLayout } from './tree-layout.ts'
import type { Workspace, Workspaces } from './workspace.ts'

/** What opening an archive takes. */
export interface HttpArchiveParts {
  readonly client: OriginClient
  readonly workspaces: Workspaces
  readonly limits: ModuleLimits
}

const READ_BYTES = 256 * 1024

/**
 * Downloads and unpacks the archive of a module. A checksum that the source states must hold. The caller disposes of
 * the tree.
 * @throws MirrorError `UPSTREAM_*`, `CHECKSUM_MISMATCH`, `MODULE_INVALID`, `STORAGE_FULL`, `STORAGE_FAILED`
 */
export async function openHttpArchive(
  source: HttpArchiveSource,
  { client, workspaces, limits }: HttpArchiveParts,
  request: UpstreamRequest & { readonly trusted: boolean },
): Promise<ModuleTree> {
  await using opened = new AsyncDisposableStack()
  const workspace = opened.use(await workspaces.create())
  return await workspace.run(async () => {
    const path = join(workspace.path, 'archive')
    const spoolPath = join(workspace.path, 'spool')
    const digest = await download(source, path, { client, maxBytes: limits.downloadBytes, request })
    const entries = await unpackInThread({ path, spoolPath, stated: source.format, limits }, request.signal)
    const singleFolder = source.subfolder.split('/', 1)[0] === '*'
    const layout = layOutTree(entries, { limits, singleFolder })
    const spool = opened.use(await open(spoolPath, 'r'))
    return new SpooledTree(digest, layout, { workspace, spool, resources: opened.move() })
  })
}

/** The digest of what came, SHA-256. */
async function download(
  source: HttpArchiveSource,
  path: string,
  {
    client,
    maxBytes,
    request,
  }: { client: OriginClient; maxBytes: number; request: UpstreamRequest & { trusted: boolean } },
): Promise<string> {
  await using file = await open(path, 'wx', 0o600)
  const archive = await client.openArchive({ url: source.url, maxBytes, ...request })
  let position = 0
  let hashes = startHashes(source.checksum)
  for await (const piece of archive) {
    if (piece.kind === 'restart') {
      await file.truncate(0)
      position = 0
      hashes = startHashes(source.checksum)
      continue
    }
    await writeAll(file, piece.bytes, position)
    position += piece.bytes.length
    for (const hash of hashes) hash.update(piece.bytes)
  }
  const [sha256, stated] = hashes.map((hash) => hash.digest('hex'))
  assertChecksum(source, stated)
  return sha256 ?? ''
}

function startHashes(checksum: SourceChecksum | undefined): Hash[] {
  return ['sha256', ...(checksum === undefined ? [] : [checksum.algorithm])].map((algorithm) => createHash(algorithm))
}

function assertChecksum({ url, checksum }: HttpArchiveSource, actual: string | undefined): void {
  if (checksum === undefined || actual === undefined || actual === checksum.hex) return
  const upstreamUrl = redactUrl(url)
  const { algorithm, hex: expected } = checksum
  const message = `the archive at ${upstreamUrl} has ${algorithm} ${actual}, but its registry states ${expected}`
  throw new MirrorError('CHECKSUM_MISMATCH', message, {
    filename: basename(url.pathname),
    expected,
    actual,
    upstreamUrl,
  })
}

interface SpooledTreeParts {
  readonly workspace: Workspace
  readonly spool: FileHandle
  readonly resources: AsyncDisposableStack
}

class SpooledTree implements ModuleTree {
  readonly revision: ModuleTree['revision']
  readonly files: ReadonlyMap<string, ModuleFile>
  readonly notes: readonly string[]
  readonly #parts: SpooledTreeParts

  constructor(digest: string, layout: TreeLayout<SpoolPlace>, parts: SpooledTreeParts) {
    this.revision = { kind: 'archive', digest }
    this.notes = layout.notes
    this.#parts = parts
    this.files = new Map(
      [...layout.files].map(([path, file]) => [path, { ...file, read: () => this.#read(file) }] as const),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.resources[Symbol.asyncDispose]()
  }

  async *#read({ size, content }: LaidOutFile<SpoolPlace>): AsyncGenerator<Uint8Array> {
    const { spool, workspace } = this.#parts
    for (let done = 0; done < size; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, size - done))
      const { bytesRead } = await workspace.run(() => spool.read(buffer, 0, buffer.length, content.offset + done))
      if (bytesRead === 0) {
        throw new MirrorError('STORAGE_FAILED', 'a temporary file was cut while it was read', { operation: 'read' })
      }
      yield buffer.subarray(0, bytesRead)
      done += bytesRead
    }
  }
}
