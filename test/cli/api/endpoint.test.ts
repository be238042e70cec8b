import { describe, expect, test } from 'vitest'
import { configuredEndpoint, parseEndpoint } from '../../../src/cli/api/endpoint.ts'
import { loadConfig } from '../../../src/config/load.ts'

describe('--server', () => {
  test.each([
    ['https://mirror.example.com:8444/', { host: 'mirror.example.com', port: 8444 }, '/', false],
    ['https://mirror.example.com:8444', { host: 'mirror.example.com', port: 8444 }, '/', false],
    ['https://mirror.example.com/ops', { host: 'mirror.example.com', port: 443 }, '/ops/', false],
    ['https://mirror.example.com/ops/admin/api/v1/', { host: 'mirror.example.com', port: 443 }, '/ops/', false],
    ['https://localhost:8444/admin/api/v1', { host: 'localhost', port: 8444 }, '/', true],
    ['https://[::1]:8444/', { host: '::1', port: 8444 }, '/', true],
    ['http://127.0.0.1:8444/', { host: '127.0.0.1', port: 8444 }, '/', true],
    ['unix:/run/admin.sock', { socketPath: '/run/admin.sock' }, '/', true],
    ['unix:///run/admin.sock', { socketPath: '/run/admin.sock' }, '/', true],
    ['unix:admin.sock', { socketPath: 'admin.sock' }, '/', true],
  ])('%s', (text, target, basePath, isOurs) => {
    expect(parseEndpoint(text)).toMatchObject({ target, basePath, isOurs, isConfigured: false })
  })

  test.each([
    ['mirror.example.com:8444', 'expected https://HOST:PORT/ or unix:PATH'],
    ['ftp://mirror.example.com/', 'expected https://HOST:PORT/ or unix:PATH'],
    ['https://mirror.example.com/?a=b', 'expected https://HOST:PORT/'],
    ['https://user:hidden@mirror.example.com/', 'the token goes into a file'],
    ['http://mirror.example.com/', 'the token would travel unprotected'],
    ['http://127.0.0.1.example.com/', 'the token would travel unprotected'],
    ['unix:', 'the path of a socket'],
  ])('%s is wrong use', (text, reason) => {
    expect(() => parseEndpoint(text)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) }),
    )
    expect(() => parseEndpoint(text)).not.toThrow(/hidden/)
  })
})

describe('without --server, the configuration tells where the admin API is', () => {
  test.each([
    [[], 'https://localhost:8444/', { host: '127.0.0.1', port: 8444 }],
    [['admin.listen.port=9444'], 'https://localhost:9444/', { host: '127.0.0.1', port: 9444 }],
    [['admin.listen.host=0.0.0.0'], 'https://localhost:8444/', { host: '127.0.0.1', port: 8444 }],
    [['admin.listen.host=::'], 'https://localhost:8444/', { host: '::1', port: 8444 }],
    [['admin.listen.host=10.0.0.5'], 'https://10.0.0.5:8444/', { host: '10.0.0.5', port: 8444 }],
    [['listen.tls=off'], 'http://localhost:8444/', { host: '127.0.0.1', port: 8444 }],
    [['admin.listen={socket: /run/a.sock}'], 'unix:/run/a.sock', { socketPath: '/run/a.sock' }],
  ])('%j: %s', async (set, name, target) => {
    const config = await loadConfig({ set, cwd: '/', env: {} })
    expect(configuredEndpoint(config)).toMatchObject({ name, target, isOurs: true, isConfigured: true })
  })

  test.each([
    ['admin=off', 'no admin API (admin: off)'],
    ['admin.listen.port=0', 'any free port'],
  ])('%s: says why it is not known', async (set, reason) => {
    const config = await loadConfig({ set: [set], cwd: '/', env: {} })
    expect(() => configuredEndpoint(config)).toThrow(reason)
  })
})
