import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readHost, readHostPattern, readRegistryHost, readRegistryHostPattern } from '../../src/config/host-key.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

const READERS = { readHost, readHostPattern, readRegistryHost, readRegistryHostPattern }

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: fc.constantFrom('a', 'F', '1', '.', ':', '[', ']', '*', '-', 'ü', '@', '/') }),
  fc.domain(),
  fc.domain().map((name) => `*.${name}:443`),
  fc.ipV4().map((address) => `${address}:8443`),
  fc.ipV6().map((address) => `[${address}]`),
)

it.each(Object.entries(READERS))(
  '%s: any text is one host in its one spelling, or a reason; nothing is thrown',
  (_, read) => {
    fc.assert(
      fc.property(text, (input) => {
        const key = read(input)
        if ('problem' in key) expect(key.problem).not.toBe('')
        else expect(read(key.host)).toEqual(key)
      }),
      { numRuns: 1_000 },
    )
  },
)

it('addresses are hosts of documents, but of no registry', () => {
  for (const address of ['10.1.2.3:8443', '[::1]', '[2001:db8::1]:8443']) {
    expect(readHost(address)).toEqual({ host: address })
    expect(readRegistryHost(address)).toHaveProperty('problem')
  }
})

it.each(Object.entries(READERS))('%s: a megabyte takes no longer', (_, read) => {
  for (const long of [
    '1'.repeat(1e6),
    '['.repeat(1e6),
    '1.'.repeat(5e5),
    '1:'.repeat(5e5),
    '*.'.repeat(5e5),
    'ü'.repeat(1e6),
  ]) {
    expect(cpuMs(() => read(long))).toBeLessThan(2_000)
  }
})
