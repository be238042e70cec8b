import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { formatModuleAddress, parseModuleAddress, parseModuleAddressText } from '../../src/protocol/module-address.ts'
import { outcome, thrownBy } from './only-mirror-errors.ts'

const PARTS = { hostname: 'reg.test', namespace: 'acme', name: 'net', targetSystem: 'aws' }

describe('parseModuleAddress', () => {
  it('keeps the letter case of namespace and name, and folds that of the host', () => {
    const address = parseModuleAddress({ ...PARTS, hostname: 'Reg.Test:443', namespace: 'Azure', name: 'Net_v2' })
    expect(formatModuleAddress(address)).toBe('reg.test/Azure/Net_v2/aws')
  })

  it.each([
    { namespace: '-a' },
    { namespace: 'a-' },
    { name: 'a.b' },
    { name: '' },
    { name: 'a'.repeat(65) },
    { targetSystem: 'AWS' },
    { targetSystem: 'a-b' },
  ])('refuses what no client asks for: %j', (part) => {
    expect(thrownBy(() => parseModuleAddress({ ...PARTS, ...part })).code).toBe('INVALID_ADDRESS')
  })

  it.each([
    { namespace: '..' },
    { name: 'a/b' },
    { name: 'a\u0000' },
    { targetSystem: 'a\\b' },
    { namespace: 'a'.repeat(500) },
    { hostname: '127.0.0.1' },
  ])('takes hostile bytes for hostile: %j', (part) => {
    expect(thrownBy(() => parseModuleAddress({ ...PARTS, ...part })).code).toBe('HOSTILE_INPUT')
  })

  it('parse and print are inverse; nothing but our own errors is thrown', () => {
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[a-z.]{1,9}\.test\/[A-Za-z_-]{1,5}\/[A-Za-z0-9]{1,5}\/[a-z0-9]{1,4}$/),
    )
    fc.assert(
      fc.property(text, (input) => {
        const address = outcome(() => parseModuleAddressText(input))
        if (!isMirrorError(address)) expect(parseModuleAddressText(formatModuleAddress(address))).toEqual(address)
      }),
    )
  })
})
