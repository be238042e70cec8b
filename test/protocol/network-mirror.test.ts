import { describe, expect, it } from 'vitest'
import { indexDocument, versionDocument } from '../../src/protocol/network-mirror.ts'
import { assertSha256, type PackageHash, parsePackageHash, zipHash } from '../../src/protocol/package-hash.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { assertVersion } from '../../src/protocol/version.ts'

function h1(letter: string): PackageHash {
  const hash = parsePackageHash(`h1:${letter.repeat(43)}=`)
  if (hash === undefined) throw new Error('not a hash')
  return hash
}

const zh = zipHash(assertSha256('a'.repeat(64)))
const linux = parsePlatform('linux_amd64')
const darwin = parsePlatform('darwin_arm64')

describe('indexDocument', () => {
  it('lists each version once, ascending', () => {
    const versions = ['1.10.0', '1.9.0', '1.9.0-beta.1', '1.9.0+b1', '1.10.0'].map(assertVersion)
    expect(JSON.stringify(indexDocument(versions))).toBe(
      '{"versions":{"1.9.0-beta.1":{},"1.9.0":{},"1.9.0+b1":{},"1.10.0":{}}}',
    )
  })

  it('is an empty object for no versions, never null', () => {
    expect(indexDocument([])).toEqual({ versions: {} })
  })
})

describe('versionDocument', () => {
  it('lists zh before h1, each hash once, platforms sorted (design, rule 2)', () => {
    const document = versionDocument([
      { platform: linux, url: 'a.zip', hashes: [h1('B'), zh, h1('A'), zh] },
      { platform: darwin, url: 'b.zip', hashes: [zh] },
    ])
    expect(JSON.stringify(document)).toBe(
      JSON.stringify({
        archives: {
          darwin_arm64: { url: 'b.zip', hashes: [zh] },
          linux_amd64: { url: 'a.zip', hashes: [zh, h1('B'), h1('A')] },
        },
      }),
    )
  })

  it('is 200 material without archives too, so that clients go on to their next source (A29)', () => {
    expect(versionDocument([])).toEqual({ archives: {} })
  })

  it('never lists an archive without a hash, without a URL, or twice (A17, A23)', () => {
    expect(() => versionDocument([{ platform: linux, url: 'a.zip', hashes: [] }])).toThrow('without a hash')
    expect(() => versionDocument([{ platform: linux, url: '', hashes: [zh] }])).toThrow('without a URL')
    const twice = { platform: linux, url: 'a.zip', hashes: [zh] }
    expect(() => versionDocument([twice, twice])).toThrow('two archives')
  })
})
