import { expect, it } from 'vitest'
import { findOriginKey } from '../../src/policy/origin-key.ts'

it('a host belongs to its own entry, else to the longest pattern that it is below', () => {
  const keys = ['*.example', '*.corp.example', 'a.corp.example']
  expect(findOriginKey(keys, 'a.corp.example')).toBe('a.corp.example')
  expect(findOriginKey(keys, 'b.corp.example')).toBe('*.corp.example')
  expect(findOriginKey(keys, 'corp.example')).toBe('*.example')
  expect(findOriginKey(keys, 'example')).toBeUndefined()
  expect(findOriginKey(keys, 'b.corp.example:8443')).toBeUndefined()
  expect(findOriginKey([...keys].reverse(), 'b.corp.example')).toBe('*.corp.example')
})
