import { crc32 } from 'node:zlib'
import { storedZip } from './stored-zip.ts'
import { makeZip, patch } from './zip-fixture.ts'

/** A provider package that is not as usual. Each holds the program that a client looks for. */
export interface OddZip {
  /** What is odd about it. */
  readonly name: string
  readonly bytes: Buffer
  /** Whether the real client unpacks it. */
  readonly client: 'unpacks' | 'refuses'
  /** Why we give no `h1:` for it; by default we do. */
  readonly noHash?: string
  /** Why it is not let in unsigned; by default it is. */
  readonly unsafe?: string
}

/** The type of the provider that all of them are packages of. */
export const ODD_TYPE = 'odd'

const PROGRAM = ['terraform-provider-odd_v1.0.0', '#!/bin/sh\nexit 1\n'] as const
const CENTRAL_HEADER = Buffer.from('PK\x01\x02')
const LOCAL_HEADER_BYTES = 30
const CENTRAL_HEADER_BYTES = 46
const END_BYTES = 22
const TEXT = 'compressible '.repeat(1000)

/** Packages that clients unpack and that are fine with us too. */
async function harmlessZips(): Promise<OddZip[]> {
  const file = await makeZip([PROGRAM, ['file', 'content']], { compress: false })
  const withDirectories = [PROGRAM, ['a/', ''], ['a/b', '1'], ['empty/', '']] as const
  const zips: [string, Buffer][] = [
    ['a program and nothing else', await makeZip([PROGRAM])],
    ['directory entries', await makeZip(withDirectories)],
    ['zip64 records', await makeZip([PROGRAM], { forceZip64Format: true })],
    ['data descriptors', await makeZip([PROGRAM], { streamed: true })],
    ['names that differ in case only', await makeZip([PROGRAM, ['file', '1'], ['FILE', '2']])],
    ['a name in UTF-8', await makeZip([PROGRAM, ['é/ü.txt', '1']])],
    ['a name in Latin-1', patch(file, Buffer.from('file'), Buffer.from('fil\xe9', 'latin1'))],
    ['thirty megabytes of zeros', await makeZip([PROGRAM, ['zeros', '\0'.repeat(30_000_000)]])],
  ]
  return zips.map(([name, bytes]) => ({ name, bytes, client: 'unpacks' }))
}

/** Contents that are not what the zip states: every client finds that out, so it does no harm. */
async function contradictoryZips(): Promise<OddZip[]> {
  const file = await makeZip([PROGRAM, ['file', 'content']], { compress: false })
  const large = await makeZip([PROGRAM, ['file', TEXT]])
  const zips: [string, Buffer, string][] = [
    ['a wrong CRC-32', patch(file, uint32(crc32('content')), Buffer.alloc(4, 1)), 'CRC-32'],
    ['changed contents', patch(file, Buffer.from('content'), Buffer.from('cOntent')), 'CRC-32'],
    ['more contents than stated', patch(large, uint32(TEXT.length), uint32(100)), 'more contents'],
    ['less contents than stated', patch(large, uint32(TEXT.length), uint32(20_000)), 'less contents'],
    ['an unknown compression', withField(file, { at: 10, value: 12 }), 'method 12'],
  ]
  return zips.map(([name, bytes, noHash]) => ({ name, bytes, client: 'refuses', noHash }))
}

/** Names and kinds of entries that an unpacking program may be led astray by. */
async function dangerousZips(): Promise<OddZip[]> {
  const file = await makeZip([PROGRAM, ['file', 'content']], { compress: false })
  const named = (name: string) => patch(file, Buffer.from('file'), Buffer.from(name))
  const twice = await makeZip([PROGRAM, ['file', '1'], ['file', '2']])
  const link = await makeZip([PROGRAM, ['link', '/etc/passwd']], { compress: false, mode: 0o120777 })
  const flagged = withField(await makeZip([PROGRAM]), { at: 8, value: 1 })
  const stored = await makeZip([[PROGRAM[0], TEXT]], { compress: false })
  const programs = Array.from({ length: 5 }, (_, i) => [`terraform-provider-odd_${i}`, TEXT] as const)
  const gigabytes = withSizes(await makeZip(programs), 0xfffffff0)
  const unpacked = { client: 'unpacks' } as const
  const refused = { client: 'refuses' } as const
  return [
    { name: 'duplicate names', bytes: twice, ...unpacked, noHash: 'duplicate', unsafe: 'two entries have one name' },
    { name: 'a name with a backslash', bytes: named('f\\le'), ...unpacked, unsafe: 'backslashes' },
    { name: 'a name with a newline', bytes: named('f\nle'), ...refused, noHash: 'newline', unsafe: 'control char' },
    { name: 'an absolute name', bytes: named('/ile'), ...unpacked, noHash: 'not clean', unsafe: 'absolute path' },
    { name: 'a name with a dot', bytes: named('./le'), ...unpacked, noHash: 'not clean' },
    { name: 'a name with a drive', bytes: named('C:le'), ...unpacked, unsafe: 'absolute path' },
    {
      name: 'a name that leaves the folder',
      bytes: named('../e'),
      ...refused,
      unsafe: 'leaves the folder',
    },
    { name: 'a symbolic link', bytes: link, ...unpacked, unsafe: 'link' },
    { name: 'a set encryption flag', bytes: flagged, ...unpacked, noHash: 'encrypted', unsafe: 'encrypted' },
    { name: 'an encrypted entry', bytes: garbled(flagged), ...refused, noHash: 'encrypted', unsafe: 'encrypted' },
    { name: 'entries that share their bytes', bytes: shared(stored, 50), ...unpacked, unsafe: 'overlap' },
    { name: 'twenty stated gigabytes', bytes: gigabytes, ...refused, noHash: 'less contents', unsafe: 'more than 16' },
  ]
}

/** What is no zip, or not only a zip. */
async function brokenZips(): Promise<OddZip[]> {
  const plain = await makeZip([PROGRAM])
  const unreadable = { noHash: '', unsafe: 'not a readable zip' }
  const page = Buffer.from('<html>'.repeat(100))
  const prefixed = Buffer.concat([Buffer.from('#!/bin/sh\n'), plain])
  const followed = Buffer.concat([plain, Buffer.from('more')])
  return [
    { name: 'something before it', bytes: prefixed, client: 'unpacks', ...unreadable },
    { name: 'something behind it', bytes: followed, client: 'unpacks', ...unreadable },
    { name: 'a missing end', bytes: plain.subarray(0, -10), client: 'refuses', ...unreadable },
    { name: 'a web page in its place', bytes: page, client: 'refuses', ...unreadable },
    { name: 'no entries', bytes: await makeZip([]), client: 'refuses', unsafe: 'empty' },
  ]
}

/** All but those that are large. */
export async function makeOddZips(): Promise<OddZip[]> {
  const groups = [harmlessZips(), contradictoryZips(), dangerousZips(), brokenZips()]
  return (await Promise.all(groups)).flat()
}

/** Seventy thousand small files, honestly packed. */
export function makeManyFiles(): OddZip {
  return { name: '70,000 entries', bytes: storedZip([PROGRAM, ...smallFiles(70_000)]), client: 'unpacks' }
}

/** 65,537 entries, of which the zip states one; Terraform 1.11.4 unpacks them all. */
export function makeHiddenEntries(): Buffer {
  return storedZip([PROGRAM, ...smallFiles(65_536)], 1)
}

export function smallFiles(count: number): (readonly [name: string, content: string])[] {
  return Array.from({ length: count }, (_, i) => [`schemas/${i}.json`, `{"${i}":0}`])
}

/** Every entry states to unpack to this size. */
export function withSizes(zip: Buffer, size: number): Buffer {
  const copy = Buffer.from(zip)
  for (let at = copy.indexOf(CENTRAL_HEADER); at >= 0; at = copy.indexOf(CENTRAL_HEADER, at + 1)) {
    copy.writeUInt32LE(size, at + 24)
  }
  return copy
}

/** The contents of the one file of `zip`, under so many names. */
function shared(zip: Buffer, count: number): Buffer {
  const start = zip.indexOf(CENTRAL_HEADER)
  const header = zip.subarray(start, -END_BYTES)
  const headers = Array.from({ length: count }, (_, i) => {
    const copy = Buffer.from(header)
    copy.write(String(i).padStart(2, '0'), CENTRAL_HEADER_BYTES + PROGRAM[0].length - 2)
    return copy
  })
  const directory = Buffer.concat(headers)
  const end = Buffer.from(zip.subarray(-END_BYTES))
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(directory.length, 12)
  return Buffer.concat([zip.subarray(0, start), directory, end])
}

/** The first contents made unreadable. */
function garbled(zip: Buffer): Buffer {
  const copy = Buffer.from(zip)
  copy.fill(0x55, LOCAL_HEADER_BYTES + PROGRAM[0].length, LOCAL_HEADER_BYTES + PROGRAM[0].length + 10)
  return copy
}

/** Sets a field of the first central directory header. */
function withField(zip: Buffer, { at, value }: { at: number; value: number }): Buffer {
  const copy = Buffer.from(zip)
  copy.writeUInt16LE(value, copy.indexOf(CENTRAL_HEADER) + at)
  return copy
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
