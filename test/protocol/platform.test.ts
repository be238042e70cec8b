import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { formatPlatform, parsePlatform, toPlatform } from '../../src/protocol/platform.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

describe('parsePlatform', () => {
  it.each(['linux_amd64', 'darwin_arm64', 'windows_386', 'plan9_arm', 'solaris_amd64'])(
    'takes any words: %s',
    (text) => {
      expect(formatPlatform(parsePlatform(text))).toBe(text)
    },
  )

  it.each([
    '',
    '_',
    'linux',
    'linux_',
    '_amd64',
    'Linux_amd64',
    'linux_amd64_',
    'linux_amd64_v1',
    'li-nux_a',
    'linux_amd64\n',
    `${'a'.repeat(33)}_b`,
  ])('calls everything else an invalid address: %j', (text) => {
    expect(thrownBy(() => parsePlatform(text)).code).toBe('INVALID_ADDRESS')
  })

  it('is the inverse of formatPlatform, throws errors of ours only, and takes no longer for a megabyte', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a-z0-9]{1,9}_[a-z0-9_]{1,9}$/)), (text) => {
        const platform = outcome(() => parsePlatform(text))
        if (!isMirrorError(platform)) expect(formatPlatform(platform)).toBe(text)
      }),
    )
    expect(cpuMs(() => outcome(() => parsePlatform('_'.repeat(1e6))))).toBeLessThan(2000)
    expect(cpuMs(() => outcome(() => parsePlatform('a'.repeat(1e6))))).toBeLessThan(2000)
  })
})

describe('toPlatform', () => {
  it('is undefined where one of the two is no word', () => {
    expect(toPlatform('linux', 'amd64')).toEqual({ os: 'linux', arch: 'amd64' })
    for (const [os, arch] of [
      ['linux', undefined],
      [null, 'amd64'],
      ['linux_x', 'y'],
      ['linux', ''],
      [1, 2],
    ]) {
      expect(toPlatform(os, arch)).toBeUndefined()
    }
  })
})
