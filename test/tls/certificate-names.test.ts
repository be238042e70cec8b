import { expect, test } from 'vitest'
import { isPermitted, listConfiguredNames, parseMachineName, permitNames } from '../../src/tls/certificate-names.ts'

test('the configured names are each there once, in one spelling', () => {
  const sources = { listenHost: 'LOCALHOST', publicUrl: 'https://[2001:DB8:0::1]:8443/', names: ['A.Example.', '::1'] }
  expect(listConfiguredNames(sources)).toEqual(['localhost', '127.0.0.1', '::1', '2001:db8::1', 'a.example'])
})

test('an address that stands for all of them is no name', () => {
  for (const listenHost of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '[::]']) {
    expect(listConfiguredNames({ listenHost, names: [] })).toEqual(['localhost', '127.0.0.1', '::1'])
  }
  expect(listConfiguredNames({ listenHost: 'fe80::1%eth0', names: [] })).toContain('fe80::1')
})

test('the name of the machine counts only if it is a DNS name', () => {
  expect(parseMachineName('Host-1.example')).toBe('host-1.example')
  for (const text of ['', 'a b', '10.0.0.1', '123', '-a', 'a..b', 'ü', 'a_b', `${'a'.repeat(64)}`]) {
    expect(parseMachineName(text), text).toBeUndefined()
  }
})

test('permitted names are the given ones and what is below them, nothing beside', () => {
  const permitted = permitNames(['a.example', '*.pods.svc', '10.0.0.1', '::1'])
  for (const name of ['a.example', 'x.a.example', '*.pods.svc', 'y.pods.svc', '10.0.0.1', '::1']) {
    expect(isPermitted(name, permitted), name).toBe(true)
  }
  for (const name of ['b.example', 'xa.example', 'example', '10.0.0.2', '::2', '::ffff:10.0.0.1']) {
    expect(isPermitted(name, permitted), name).toBe(false)
  }
})
