import { chmod, open, readdir, readFile, rm, stat, truncate, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Chaos } from './chaos.ts'
import { choosePlatform, choosePublished } from './choices.ts'
import type { TrueVersion } from './truth.ts'

/** Where a blob lies in a data folder. */
export function blobFile(dataDir: string, digest: string): string {
  return join(dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest)
}

/**
 * Damages something in the data folder. While the mirror runs, only in ways that the file system shows: a bit that
 * flips and leaves the time of the file as it was is found by the check at the next start. Nothing may be under way.
 */
export async function damage(chaos: Chaos): Promise<void> {
  const { random } = chaos
  const version = random.pickLate([...choosePublished(chaos).versions.values()])
  const what = random.weighted({ blob: 50, record: 40, trust: 4, lists: 6 })
  if (what === 'blob') await damageBlob(chaos, version)
  else if (what === 'record') await damageRecord(chaos, version)
  else if (what === 'trust') await damageTrust(chaos, version)
  else await loseLists(chaos)
}

async function damageBlob(chaos: Chaos, version: TrueVersion): Promise<void> {
  const { random, mirror, knowledge } = chaos
  const platform = choosePlatform(chaos, version)
  const edition = random.pick(version.editions)
  const how = random.pick(['flip a bit', 'cut', 'empty', 'delete'] as const)
  const digest = edition.content.archives.get(platform)?.digest ?? ''
  chaos.note(`damage the blob of ${version.name} ${platform}: ${how}${mirror.running ? '' : ' (mirror down)'}`)
  const file = blobFile(mirror.dataDir, digest)
  if (!(await exists(file))) return
  knowledge.loseBlob(digest)
  chaos.damagedDigests.add(digest)
  if (how === 'flip a bit') await flipBit(file, { keepTime: !mirror.running })
  else await hurt(file, how)
}

async function damageRecord(chaos: Chaos, version: TrueVersion): Promise<void> {
  const { random, mirror, knowledge } = chaos
  const record = random.pick(['release', 'pin', 'archive'] as const)
  const platform = choosePlatform(chaos, version)
  const how = random.pick(['cut', 'empty', 'delete'] as const)
  chaos.note(`damage the record of ${version.name}: ${record} ${record === 'archive' ? platform : ''}: ${how}`)
  const name = record === 'archive' ? join('archives', platform) : record
  const file = join(providerFolder(mirror.dataDir, version), 'versions', version.version, `${name}.json`)
  if (!(await exists(file))) return
  knowledge.loseRecord(version, record === 'archive' ? { archive: platform } : record, mirror.life)
  await hurt(file, how)
}

async function damageTrust(chaos: Chaos, version: TrueVersion): Promise<void> {
  const { mirror, knowledge } = chaos
  chaos.note(`damage the record of trust in ${version.provider.name}`)
  const file = join(providerFolder(mirror.dataDir, version), 'trust.json')
  if (!(await exists(file))) return
  knowledge.loseTrust(version.provider, mirror.life)
  await hurt(file, 'empty')
}

/** What may be lost: lists and discovery documents. */
async function loseLists(chaos: Chaos): Promise<void> {
  const { mirror, random } = chaos
  chaos.note('damage all lists')
  chaos.knowledge.loseList()
  const folder = join(mirror.dataDir, 'metadata')
  const how = random.pick(['cut', 'empty', 'delete'] as const)
  for (const shard of await readdir(folder)) {
    for (const name of await readdir(join(folder, shard))) await hurt(join(folder, shard, name), how)
  }
}

async function flipBit(file: string, { keepTime }: { keepTime: boolean }): Promise<void> {
  const { atime, mtime, size } = await stat(file)
  if (size === 0) return
  await chmod(file, 0o644)
  const handle = await open(file, 'r+')
  try {
    const byte = Buffer.alloc(1)
    const position = Math.floor(size / 2)
    await handle.read(byte, 0, 1, position)
    byte.writeUInt8(byte.readUInt8(0) ^ 1, 0)
    await handle.write(byte, 0, 1, position)
  } finally {
    await handle.close()
  }
  await chmod(file, 0o444)
  if (keepTime) await utimes(file, atime, mtime)
}

async function hurt(file: string, how: 'cut' | 'empty' | 'delete'): Promise<void> {
  if (how === 'delete') return rm(file, { force: true })
  await chmod(file, 0o644)
  await truncate(file, how === 'empty' ? 0 : Math.floor((await readFile(file)).length / 2))
}

function providerFolder(dataDir: string, { provider }: TrueVersion): string {
  return join(dataDir, 'records', 'providers', provider.host, provider.namespace, provider.type)
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    (facts) => facts.isFile(),
    () => false,
  )
}
