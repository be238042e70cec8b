import { readdirSync } from 'node:fs'
import * as openpgp from 'openpgp'
import { sign } from './key-fixture.ts'
import { changing, day, entry, honest, made, type SignatureCase } from './signature-case.ts'
import { hasVectors, readVector, vector } from './vectors.ts'

const TRAILING = 'what is behind a signature is signed by nobody, and no tool puts anything there'
const onlyByUs = {
  client: 'refuses',
  weDifferBecause: 'it is the key that the origin lists, only packed otherwise',
} as const

/** Several keys and several signatures. */
export async function severalCases(): Promise<SignatureCase[]> {
  const acme = await made()
  const good = honest(acme)
  const stranger = honest(await made())
  const wrong = entry(acme.publicKey.armor(), () => sign(Buffer.from('other'), acme.privateKey, day(-100)))
  return [
    { name: 'two keys of which the second signed', signers: [good], listed: [stranger, good], client: 'accepts' },
    { name: 'a key that did not sign', signers: [good], listed: [stranger], client: 'refuses' },
    { name: 'two signatures by two listed keys', signers: [good, stranger], client: 'accepts' },
    { name: 'two signatures, the first by a stranger', signers: [stranger, good], listed: [good], client: 'accepts' },
    { name: 'two signatures, the second by a stranger', signers: [good, stranger], listed: [good], client: 'accepts' },
    {
      name: 'two signatures, the first over other bytes',
      signers: [wrong, good],
      listed: [good],
      client: 'refuses',
      weDifferBecause: 'one good signature is enough, wherever it stands',
    },
    { name: 'two signatures, the second over other bytes', signers: [good, wrong], listed: [good], client: 'accepts' },
    { name: 'a signature over other bytes', signers: [wrong], client: 'refuses' },
  ]
}

/** The form of the signature file. */
export async function signatureFormCases(): Promise<SignatureCase[]> {
  const acme = await made()
  const behind = (what: string, bytes: (signature: Buffer) => Uint8Array): SignatureCase => ({
    name: `a signature with ${what} behind it`,
    signers: [changing(acme, (signature) => Buffer.concat([signature, bytes(signature)]))],
    client: 'accepts',
    weDifferBecause: TRAILING,
  })
  const armor = async (binarySignature: Buffer): Promise<Buffer> =>
    Buffer.from((await openpgp.readSignature({ binarySignature })).armor())
  const newlineFirst = changing(acme, (signature) => Buffer.concat([Buffer.from('\n'), signature]))
  return [
    { name: 'an armored signature file', signers: [changing(acme, armor)], client: 'refuses' },
    { name: 'an empty signature', signers: [changing(acme, () => Buffer.alloc(0))], client: 'refuses' },
    { name: 'a torn signature', signers: [changing(acme, (bytes) => bytes.subarray(0, -9))], client: 'refuses' },
    { name: 'a signature with a newline before it', signers: [newlineFirst], client: 'refuses' },
    behind('a newline', () => Buffer.from('\n')),
    behind('a zero byte', () => Buffer.alloc(1)),
    behind('a torn packet', (signature) => signature.subarray(0, 20)),
  ]
}

/** The form of a listed key. */
export async function keyFormCases(): Promise<SignatureCase[]> {
  const acme = await made()
  const good = honest(acme)
  const armor = acme.publicKey.armor()
  const otherArmor = (await made()).publicKey.armor()
  const listing = (asciiArmor: string) => ({ signers: [good], listed: [{ ...good, asciiArmor }] })
  const accepted = { client: 'accepts' } as const
  const unreadable = { client: 'refuses', code: 'KEY_UNREADABLE' } as const
  const broken = { ...good, asciiArmor: 'no key here' }
  return [
    { name: 'a key with CRLF', ...listing(armor.replace(/\r?\n/g, '\r\n')), ...accepted },
    { name: 'a key with LF', ...listing(armor.replace(/\r\n/g, '\n')), ...accepted },
    { name: 'a key with CR', ...listing(armor.replace(/\r?\n/g, '\r')), ...onlyByUs },
    { name: 'a key with text before it', ...listing(`Key of Acme:\n${armor}`), ...accepted },
    { name: 'a key with text behind it', ...listing(`${armor}\ngit st\n`), ...accepted },
    { name: 'a key with no-break spaces', ...listing(armor.replace(/\r?\n\r?\n/, '\n\u00a0\n')), ...accepted },
    { name: 'a key without a checksum', ...listing(armor.replace(/\n=.{4}\r?\n/, '\n')), ...accepted },
    { name: 'a key with a wrong checksum', ...listing(armor.replace(/\n=.{4}\r?\n/, '\n=AAAA\n')), ...onlyByUs },
    { name: 'a key with another block behind it', ...listing(armor + otherArmor), ...accepted },
    { name: 'a key with another block before it', ...listing(otherArmor + armor), ...onlyByUs },
    { name: 'a key in binary form', ...listing(Buffer.from(acme.publicKey.write()).toString('latin1')), ...onlyByUs },
    {
      name: 'the private half of the key',
      ...listing(acme.privateKey.armor()),
      client: 'accepts',
      weDifferBecause: 'a key whose private half is published may be anybody’s',
      code: 'KEY_UNREADABLE',
    },
    { name: 'text instead of the only key', ...listing('no key here'), ...unreadable },
    { name: 'a torn block as the only key', ...listing(armor.slice(0, 300)), ...unreadable },
    {
      name: 'an unreadable key before the good one',
      signers: [good],
      listed: [broken, good],
      client: 'refuses',
      weDifferBecause: 'a key that cannot be read does no harm beside one that made the signature',
    },
    { name: 'an unreadable key behind the good one', signers: [good], listed: [good, broken], client: 'accepts' },
  ]
}

/** Every real public key, listed before the one that signed: a client goes on to that only if it can read the first. */
export async function realKeyCases(): Promise<SignatureCase[]> {
  if (!hasVectors) return []
  const good = honest(await made())
  const files = ['opentofu-registry/keys/', 'signatures/keys/'].flatMap((folder) =>
    readdirSync(vector(folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}${name}`),
  )
  return files
    .filter((file) => file.endsWith('.asc'))
    .map((file): SignatureCase => {
      const bytes = readVector(file)
      const isArmored = bytes.includes('-----BEGIN PGP')
      const listed = [{ ...good, asciiArmor: bytes.toString(isArmored ? 'utf8' : 'latin1') }, good]
      const verdict = isArmored ? ({ client: 'accepts' } as const) : onlyByUs
      return { name: `the real key ${file}`, signers: [good], listed, ...verdict }
    })
}
