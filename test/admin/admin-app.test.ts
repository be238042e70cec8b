import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listRoutes } from '../../src/admin/admin-app.ts'
import { MirrorError } from '../../src/errors.ts'
import { type AdminStage, openAdminStage, TOKEN } from './admin-stage.ts'
import { heldPackage, JOB_ID, standIns } from './stand-ins.ts'

const operations = standIns()
let stage: AdminStage

beforeAll(async () => {
  stage = await openAdminStage(operations)
})
afterAll(() => stage[Symbol.asyncDispose]())

/** A path of every route, with words in the place of its parameters. */
function pathsOf(): { method: string; path: string }[] {
  return listRoutes(stage.app).map((route) => {
    const [method = '', template = ''] = route.split(' ')
    return { method, path: template.replaceAll(/:(\w+)/g, 'a') }
  })
}

describe('the token', () => {
  test('every route refuses none and a wrong one, before it does anything', async () => {
    const paths = pathsOf()
    expect(paths.length).toBeGreaterThan(18)
    operations.asked.length = 0
    for (const { method, path } of paths) {
      for (const token of [null, 'wrong', '', `${TOKEN}x`, TOKEN.slice(0, -1), TOKEN.toUpperCase()]) {
        const { status, headers, json } = await stage.ask(`/${path}`, { method, token })
        expect({ path, token, status, code: json.code }).toEqual({ path, token, status: 401, code: 'UNAUTHORIZED' })
        expect(headers['www-authenticate']).toBe('Bearer realm="Terramirror"')
      }
    }
    expect(operations.asked).toEqual([])
  })

  test.each([
    ['GET', '//'],
    ['GET', '//nowhere'],
    ['GET', '//a/../b'],
    ['GET', '//%00'],
    ['GET', `//${'a'.repeat(4_000)}`],
    ['PATCH', '/jobs'],
    ['OPTIONS', '/jobs'],
    ['TRACE', '//'],
    ['MKCOL', '//x'],
  ])('%s %s without it tells nothing but 401', async (method, path) => {
    const { status, json } = await stage.ask(path, { method, token: null })
    expect({ status, ...json, request_id: '' }).toEqual({
      status: 401,
      error: expect.stringContaining('bearer token'),
      code: 'UNAUTHORIZED',
      request_id: '',
    })
  })

  test.each([`bearer ${TOKEN}`, `BEARER  ${TOKEN} `])(
    'is taken as clients write the scheme: %s',
    async (authorization) => {
      const { status } = await stage.ask('/jobs', { headers: { authorization } })
      expect(status).toBe(200)
    },
  )

  test.each([TOKEN, `Basic ${TOKEN}`, `Bearer${TOKEN}`, `Bearer ${TOKEN} x`])('is not taken as %s', async (given) => {
    expect((await stage.ask('/jobs', { headers: { authorization: given } })).status).toBe(401)
  })

  test('in the URL or the body is no token', async () => {
    expect((await stage.ask(`/jobs?token=${TOKEN}&access_token=${TOKEN}`, { token: null })).status).toBe(401)
    expect((await stage.ask('/verify', { method: 'POST', body: { token: TOKEN }, token: null })).status).toBe(401)
  })

  test('a large body of who has none is not waited for', async () => {
    const socket = connect(stage.port, '127.0.0.1')
    socket.write('POST /admin/api/v1/warm HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n{')
    const [head] = await once(socket, 'data')
    expect(String(head)).toMatch(/^HTTP\/1\.1 401 /)
    socket.destroy()
  })

  test('appears in no log, audit or metric, given or asked for', async () => {
    await stage.ask('/jobs')
    await stage.ask(`/jobs?token=${TOKEN}`, { token: `${TOKEN}-wrong` })
    await stage.ask(`/pins/release`, { method: 'PUT', body: { items: [TOKEN], token: TOKEN } })
    const told = [stage.logText, JSON.stringify(await stage.audit()), await stage.metrics.text()].join()
    expect(told.includes(TOKEN)).toBe(false)
    expect(told.includes('UNAUTHORIZED')).toBe(true)
  })

  test('each refusal is counted and logged, and all of them are one line of the audit a minute', async () => {
    await using other = await openAdminStage()
    for (let each = 0; each < 5; each++) await other.ask('/jobs', { token: 'wrong' })
    await other.ask('/jobs', { token: null })
    const counted = await other.metrics.text()
    expect(counted).toContain('terramirror_admin_requests_total{route="refused",status="401"} 6')
    expect(counted).toContain('terramirror_admin_refused_tokens_total{reason="wrong"} 5')
    expect(counted).toContain('terramirror_admin_refused_tokens_total{reason="missing"} 1')
    expect(other.logText.match(/UNAUTHORIZED/g)).toHaveLength(6)
    expect(await other.audit()).toMatchObject([
      { who: null, client: '127.0.0.1', action: 'authenticate', result: 'refused', code: 'UNAUTHORIZED', attempts: 1 },
    ])
  })
})

describe('routes', () => {
  test.each([
    ['GET', '/jobs?limit=5', 200],
    ['GET', `/jobs/${JOB_ID}?outcome=failed`, 200],
    ['DELETE', `/jobs/${JOB_ID}`, 200],
    ['GET', '/jobs/other', 404],
    ['GET', '/jobs/other/events', 404],
    ['DELETE', '/jobs/other', 404],
    ['GET', '/packages?q=aws&origin=a&namespace=b&type=c', 200],
    ['GET', '/modules?name=vpc', 200],
    ['GET', '/stats', 200],
    ['GET', '/origins', 200],
    ['GET', '/explain?address=acme/widget&version=1.0.0', 200],
    ['GET', '/pins', 200],
    ['GET', '/pins/release', 200],
    ['DELETE', '/pins/release', 204],
    ['DELETE', '/packages/registry.example.test/acme/widget/1.0.0/linux_amd64', 200],
    ['DELETE', '/modules/registry.example.test/acme/vpc/aws/1.0.0', 200],
    ['GET', '/openapi.json', 200],
    ['HEAD', '/stats', 200],
    ['GET', '/nowhere', 404],
    ['GET', '//', 404],
    ['GET', '/jobs/', 404],
    ['POST', '/jobs', 405],
    ['PUT', '/packages', 405],
    ['OPTIONS', '/stats', 405],
  ])('%s %s is %i', async (method, path, status) => {
    const answer = await stage.ask(path, { method })
    expect(answer.status).toBe(status)
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    if (status >= 400) expect(answer.json).toMatchObject({ error: expect.any(String), code: expect.any(String) })
  })

  test('another method is told which ones there are', async () => {
    expect((await stage.ask('/pins/release', { method: 'POST' })).headers.allow).toBe('GET, HEAD, PUT, DELETE')
    expect((await stage.ask('/warm')).headers.allow).toBe('POST')
  })

  test('a scope is parsed into what the use case takes; forget is asked for by name', async () => {
    operations.asked.length = 0
    const scope = 'registry.example.test:8443/acme/Widget'
    await stage.ask(`/packages/${scope}`, { method: 'DELETE' })
    await stage.ask(`/packages/${scope}/v1?forget=true`, { method: 'DELETE' })
    await stage.ask(`/packages/${scope}/1.0/linux_arm64?forget=true`, { method: 'DELETE' })
    await stage.ask('/modules/registry.example.test/acme/vpc/aws', { method: 'DELETE' })
    const address = { hostname: 'registry.example.test:8443', namespace: 'acme', type: 'widget' }
    expect(operations.asked).toEqual([
      ['purge', { kind: 'package', address }, { forget: false }],
      [
        'purge',
        { kind: 'package', address, version: '1.0.0', platform: { os: 'linux', arch: 'arm64' } },
        { forget: true },
      ],
      [
        'purge',
        {
          kind: 'module',
          address: { hostname: 'registry.example.test', namespace: 'acme', name: 'vpc', targetSystem: 'aws' },
        },
        { forget: false },
      ],
    ])
  })

  test('next is the cursor of the following page, and null at the end', async () => {
    operations.asked.length = 0
    const { json } = await stage.ask('/packages?limit=1')
    await stage.ask(`/packages?limit=1&cursor=${json.next}&q=x`)
    const jobs = await stage.ask('/jobs?limit=1')
    await stage.ask(`/jobs?limit=1&cursor=${jobs.json.next}`)
    expect(operations.asked).toEqual([
      ['stock.listPackages', { limit: 1 }],
      ['stock.listPackages', { limit: 1, after: heldPackage.item, q: 'x' }],
      ['jobs.list', { limit: 1 }],
      ['jobs.list', { limit: 1, after: JOB_ID }],
    ])
    expect((await stage.ask('/modules')).json.next).toBeNull()
  })

  test('warm starts a job and says where it is; a dry run only tells', async () => {
    const started = await stage.ask('/warm', { method: 'POST', body: { providers: [{ source: 'acme/widget' }] } })
    expect([started.status, started.headers.location]).toEqual([202, `/admin/api/v1/jobs/${JOB_ID}`])
    expect((await stage.ask(String(`/${started.headers.location}`))).json.id).toBe(JOB_ID)
    const dry = await stage.ask('/warm', { method: 'POST', body: { dryRun: true } })
    expect([dry.status, dry.json.unknownSizes]).toEqual([200, 1])
  })

  test('a version with other bytes is 409 with both digests, until it is accepted', async () => {
    const changes = [{ filename: 'a.zip', held: 'a'.repeat(64), offered: 'b'.repeat(64) }]
    const result = { address: 'acme/widget', version: '1.0.0', added: [], changes }
    await using other = await openAdminStage({
      refresh: {
        async refresh({ address }, { accept }) {
          if (accept) return { ...result, outcome: 'replaced' }
          throw new MirrorError('ACCEPT_REQUIRED', 'other bytes', { address, version: '1.0.0', changes })
        },
      },
    })
    const body = { address: 'acme/widget', version: '1.0.0' }
    const refused = await other.ask('/refresh', { method: 'POST', body })
    expect([refused.status, refused.json]).toEqual([409, { ...result, outcome: 'changed' }])
    expect((await other.ask('/refresh', { method: 'POST', body: { ...body, accept: true } })).status).toBe(200)
    expect(await other.audit()).toMatchObject([
      { action: 'refresh', target: 'acme/widget 1.0.0', result: 'refused', code: 'ACCEPT_REQUIRED' },
      { action: 'refresh', target: 'acme/widget 1.0.0', result: 'done' },
    ])
  })
})

describe('what is wrong with a request', () => {
  test('all of it is told at once, with its place, and no value is repeated', async () => {
    const secret = 'hunter2'
    const body = {
      providers: [{ source: 1 }, { source: 'a/b', versions: secret }],
      platforms: secret,
      dryRun: 'yes',
      [secret.repeat(100)]: 1,
    }
    const { status, json } = await stage.ask('/warm', { method: 'POST', body })
    expect([status, json.code]).toEqual([400, 'REQUEST_INVALID'])
    expect(json.problems).toEqual([
      'body.providers[0].source: expected string, received number',
      'body.providers[1].versions: unknown',
      'body.platforms: expected array, received string',
      'body.dryRun: expected boolean, received string',
      expect.stringMatching(/^body\.(hunter2)+\w*…: unknown$/),
    ])
  })

  test('there is an end to it', async () => {
    const providers = Array.from({ length: 5_000 }, () => ({}))
    const { json } = await stage.ask('/warm', { method: 'POST', body: { providers } })
    expect(json.problems).toHaveLength(101)
    expect(json.problems.at(-1)).toBe('and 4900 more')
  })

  test.each([
    ['/jobs?limit=0', 'query.limit: expected number to be >=1'],
    ['/jobs?limit=many', 'query.limit: expected number, received NaN'],
    ['/jobs?limit=1&limit=2', 'query.limit: expected number'],
    ['/jobs?page=2', 'query.page: unknown'],
    ['/stats?verbose=1', 'query.verbose: unknown'],
    ['/explain', 'query.address: missing'],
    [`/jobs/${JOB_ID}?outcome=bad`, 'query.outcome: expected done or held or'],
    ['/pins/UPPER', 'path.name: expected a-z, 0-9, dot, dash or underline'],
  ])('%s', async (path, problem) => {
    const { status, json } = await stage.ask(path)
    expect([status, json.code]).toEqual([400, 'REQUEST_INVALID'])
    expect(json.problems.join()).toContain(problem)
  })

  test.each([
    ['not JSON', { body: '{' }, 'body: expected JSON'],
    ['empty', { body: '' }, 'body: expected JSON'],
    ['a list', { body: [] }, 'body: expected object, received array'],
    ['a form', { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 'Content-Type:'],
    ['text', { body: '{}', headers: { 'content-type': 'text/plain' } }, 'Content-Type: expected application/json'],
  ])('a body that is %s', async (_, options, problem) => {
    const { status, json } = await stage.ask('/verify', { method: 'POST', ...options })
    expect([status, json.code]).toEqual([400, 'REQUEST_INVALID'])
    expect(json.problems.join()).toContain(problem)
  })

  test.each([
    '/packages/registry.example.test/acme/wid--get',
    '/packages/-bad-/acme/widget',
    '/packages/registry.example.test/acme/widget/latest',
    '/packages/registry.example.test/acme/widget/1.0.0/linux',
    '/modules/registry.example.test/acme/vpc/AWS',
  ])('an address outside the grammar, %s, is 400 and changes nothing', async (path) => {
    operations.asked.length = 0
    const { status } = await stage.ask(path, { method: 'DELETE' })
    expect(status).toBe(400)
    expect(operations.asked).toEqual([])
  })

  test('a body of 32 MB is read, a larger one is refused before it comes', async () => {
    const body = { lockFiles: Array.from({ length: 31 }, () => '# '.repeat(500_000)) }
    const large = await stage.ask('/warm', { method: 'POST', body })
    expect(large.status).toBe(202)
    const socket = connect(stage.port, '127.0.0.1')
    const head = ['POST /admin/api/v1/warm HTTP/1.1', 'Host: a', `Authorization: Bearer ${TOKEN}`]
    const type = ['Content-Type: application/json', 'Content-Length: 32000001']
    socket.write(`${[...head, ...type].join('\r\n')}\r\n\r\n{`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*body: larger than 32 MB/)
    socket.destroy()
  })

  test('a body that does not say how large it is is refused', async () => {
    const socket = connect(stage.port, '127.0.0.1')
    const head = ['POST /admin/api/v1/verify HTTP/1.1', 'Host: a', `Authorization: Bearer ${TOKEN}`]
    const type = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
    socket.write(`${[...head, ...type].join('\r\n')}\r\n\r\n2\r\n{}\r\n`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*body: needs a Content-Length/)
    socket.destroy()
  })
})

describe('the audit', () => {
  test('has one line for each change, also for one that was refused or that failed, and none for a question', async () => {
    await using other = await openAdminStage({
      verify: {
        start: () => Promise.reject(new MirrorError('STORAGE_FULL', 'the disk is full', { operation: 'write' })),
      },
      pins: { ...standIns().pins, delete: () => Promise.reject(new Error('a bug')) },
    })
    await other.ask('/packages')
    await other.ask('/warm', { method: 'POST', body: { dryRun: true } })
    const warmed = await other.ask('/warm', {
      method: 'POST',
      body: { modules: [{ source: 'a/b/c' }], lockFiles: [''] },
    })
    await other.ask('/jobs/other', { method: 'DELETE' })
    await other.ask('/verify', { method: 'POST', body: {} })
    await other.ask('/verify', { method: 'POST', body: { rate: 0 } })
    await other.ask('/pins/release', { method: 'DELETE' })
    await other.ask('/packages/registry.example.test/acme/widget/1.0', { method: 'DELETE' })
    await other.ask('/nowhere', { method: 'DELETE' })
    const lines = await other.audit()
    expect(lines.map(({ action, target, result, code }) => [action, target, result, code].join(' | '))).toEqual([
      `warm | 1 modules, 1 lock files: job ${JOB_ID} | done | `,
      'cancelJob | other | refused | ITEM_NOT_FOUND',
      'verify | everything | failed | STORAGE_FULL',
      'verify | verify | refused | REQUEST_INVALID',
      'unpin | release | failed | UNEXPECTED',
      'purgeProviderVersion | registry.example.test/acme/widget 1.0.0 | done | ',
    ])
    expect(lines[0]).toEqual({
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      who: 'admin.token',
      client: '127.0.0.1',
      action: 'warm',
      target: expect.any(String),
      result: 'done',
      requestId: warmed.headers['x-request-id'],
    })
  })

  test('every route that changes something has a name for it', () => {
    const documented = stage.app.openAPIRegistry.definitions.flatMap((definition) =>
      definition.type === 'route' ? [`${definition.route.method.toUpperCase()} ${definition.route.path}`] : [],
    )
    const served = listRoutes(stage.app).map((route) => route.replaceAll(/:(\w+)/g, '{$1}'))
    expect(documented.toSorted()).toEqual(served.toSorted())
  })
})

test('what is no error of ours is a bare 500; the log has the rest', async () => {
  await using other = await openAdminStage({
    statistics: {
      read: () => {
        throw new Error('secret inside')
      },
    },
  })
  const { status, json, text } = await other.ask('/stats')
  expect([status, json.code]).toEqual([500, 'UNEXPECTED'])
  expect(text).not.toContain('secret inside')
  expect(other.logText).toContain('secret inside')
})

test('requests are logged and counted by their route, never by their path', async () => {
  await stage.ask('/packages/registry.example.test/acme/widget/1.0.0', { method: 'DELETE' })
  const route = '/admin/api/v1/packages/:origin/:namespace/:type/:version'
  expect(await stage.metrics.text()).toContain(`terramirror_admin_requests_total{route="${route}",status="200"}`)
  expect(stage.logText.includes(`"method":"DELETE","route":"${route}","status":200`)).toBe(true)
})
