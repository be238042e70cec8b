import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'
import { archiveFile } from './archives.ts'
import type { Stage } from './stage.ts'

/** A provider of the size of hashicorp/aws: 700 MB that pack to about 150 MB. */
export const BIG = { provider: 'bench/big', version: '1.0.0', program: 'terraform-provider-big_v1.0.0' } as const

const PROGRAM_BYTES = 700_000_000
const BLOCK_BYTES = 7_000_000
const WORDS = 256
/** Every so many words, as many random bytes as the last word had: it makes the whole pack as a real program does. */
const RANDOM_EVERY = 24

let made: Promise<string> | undefined

/** Publishes the big provider once; gives the path of its archive. */
export function publishBig(stage: Stage): Promise<string> {
  made ??= makeBig(stage)
  return made
}

async function makeBig(stage: Stage): Promise<string> {
  const path = join(stage.folder, 'big.zip')
  const zip = new ZipFile()
  const options = { mode: 0o100755, compressionLevel: 1, size: PROGRAM_BYTES }
  zip.addReadStream(Readable.from(programBytes()), BIG.program, options)
  zip.end()
  await pipeline(zip.outputStream, createWriteStream(path))
  const { provider, version } = BIG
  await stage.publishOnce({ provider, version, platforms: ['linux_amd64'], archive: () => ({ path }) })
  return archiveFile(stage, provider)
}

/** One block again and again: it is too long for a packer to see that. */
function* programBytes(): Generator<Buffer> {
  const block = programBlock()
  for (let count = 0; count < PROGRAM_BYTES / BLOCK_BYTES; count++) yield block
}

/** Words of 6 to 21 bytes in any order, with noise in between. The same each time. */
function programBlock(): Buffer {
  const noise = expand('noise', BLOCK_BYTES)
  const words = Array.from({ length: WORDS }, (_, each) => expand(`word ${each}`, 6 + (each % 16)))
  const block = Buffer.alloc(BLOCK_BYTES)
  for (let position = 0, count = 0; position < BLOCK_BYTES; count++) {
    const word = words[noise.readUInt16LE((2 * count) % (BLOCK_BYTES - 2)) % WORDS] ?? noise
    position += word.copy(block, position)
    if (count % RANDOM_EVERY === 0) position += noise.copy(block, position, position, position + word.length)
  }
  return block
}

function expand(seed: string, bytes: number): Buffer {
  return createHash('shake256', { outputLength: bytes }).update(seed).digest()
}
