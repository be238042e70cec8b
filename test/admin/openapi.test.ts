import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listRoutes } from '../../src/admin/admin-app.ts'
import { MirrorError } from '../../src/errors.ts'
import { type AdminAsk, type AdminStage, openAdminStage } from './admin-stage.ts'
import { JOB_ID } from './stand-ins.ts'

// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested
let document: any
let ajv: Ajv2020
let stage: AdminStage

beforeAll(async () => {
  stage = await openAdminStage({
    verify: {
      start: () => Promise.reject(new MirrorError('STORAGE_FULL', 'the disk is full', { operation: 'write' })),
    },
    refresh: {
      refresh: async ({ address }, { accept }) => {
        const version = '1.0.0'
        const changes = [
          { filename: 'a.zip', held: 'a'.repeat(64), offered: 'b'.repeat(64) },
          { filename: 'b.zip', held: 'a'.repeat(64), offered: null },
        ]
        if (address === 'acme/gone') {
          const fields = { address, upstreamUrl: 'https://registry.example.test/v1/', upstreamStatus: 404 }
          throw new MirrorError('PROVIDER_NOT_FOUND', 'the origin has no such provider', fields)
        }
        if (!accept) throw new MirrorError('ACCEPT_REQUIRED', 'other bytes', { address, version, changes })
        return { address, version, added: [], outcome: 'replaced', changes }
      },
    },
  })
  document = (await stage.ask('/openapi.json')).json
  ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true, allowUnionTypes: true })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
  for (const word of ['openapi', 'info', 'security', 'paths', 'components']) ajv.addKeyword(word)
  ajv.addSchema(document, 'api')
})
afterAll(() => stage[Symbol.asyncDispose]())

/** Holds an answer against what the document says of it; gives what is wrong. */
function problemsWith(template: string, method: string, status: number, json: unknown): string[] {
  const operation = document.paths[template][method]
  const key = String(status) in operation.responses ? String(status) : 'default'
  const parts = ['paths', template, method, 'responses', key, 'content', 'application/json', 'schema']
  const pointer = parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  const validate = ajv.getSchema(`api#/${encodeURI(pointer)}`)
  if (validate === undefined) return [`nothing at ${pointer}`]
  return validate(json) ? [] : [ajv.errorsText(validate.errors)]
}

test('the document has every route of the app, and nothing else', () => {
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations as object).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const served = listRoutes(stage.app).map((route) => route.replaceAll(/:(\w+)/g, '{$1}'))
  expect(documented.toSorted()).toEqual(served.toSorted())
  expect(document).toMatchObject({ openapi: '3.1.0', security: [{ token: [] }] })
})

test('every reference leads somewhere, and every named schema is used', () => {
  const text = JSON.stringify(document)
  const named = Object.keys(document.components.schemas)
  const used = new Set([...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name))
  // What an event holds stands in words: no media type of OpenAPI 3.1 can say it.
  expect([...used, 'JobEvent'].toSorted()).toEqual(named.toSorted())
})

test('every operation has a name of its own and says what it is for', () => {
  const operations = Object.values(document.paths).flatMap((each) => Object.values(each as object))
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  for (const { summary, responses } of operations) {
    expect(summary).toMatch(/^[A-Z].*\.$/)
    expect(Object.keys(responses)).toContain('default')
  }
})

const WIDGET = '/packages/registry.example.test/acme/widget'
const VPC = '/modules/registry.example.test/acme/vpc/aws'

describe('real answers are as the document says', () => {
  const asks: [string, string, string, AdminAsk, number][] = [
    ['/jobs', 'get', '/jobs', {}, 200],
    ['/jobs', 'get', '/jobs?limit=0', {}, 400],
    ['/jobs', 'get', '/jobs', { token: null }, 401],
    ['/jobs/{id}', 'get', `/jobs/${JOB_ID}`, {}, 200],
    ['/jobs/{id}', 'get', '/jobs/none', {}, 404],
    ['/jobs/{id}', 'delete', `/jobs/${JOB_ID}`, {}, 200],
    ['/warm', 'post', '/warm', { body: { dryRun: true } }, 200],
    ['/warm', 'post', '/warm', { body: {} }, 202],
    ['/warm', 'post', '/warm', { body: { providers: [{}, { a: 1 }] } }, 400],
    ['/verify', 'post', '/verify', { body: {} }, 507],
    ['/packages', 'get', '/packages', {}, 200],
    ['/modules', 'get', '/modules', {}, 200],
    ['/stats', 'get', '/stats', {}, 200],
    ['/origins', 'get', '/origins', {}, 200],
    ['/explain', 'get', '/explain?address=acme/widget', {}, 200],
    ['/pins', 'get', '/pins', {}, 200],
    ['/pins/{name}', 'get', '/pins/release', {}, 200],
    ['/pins/{name}', 'put', '/pins/release', { body: { items: ['registry.example.test/acme/widget'] } }, 200],
    ['/refresh', 'post', '/refresh', { body: { address: 'acme/widget' } }, 409],
    ['/refresh', 'post', '/refresh', { body: { address: 'acme/widget', accept: true } }, 200],
    ['/refresh', 'post', '/refresh', { body: { address: 'acme/gone' } }, 404],
    ['/packages/{origin}/{namespace}/{type}', 'delete', WIDGET, {}, 200],
    ['/packages/{origin}/{namespace}/{type}/{version}', 'delete', `${WIDGET}/1.0.0`, {}, 200],
    ['/packages/{origin}/{namespace}/{type}/{version}/{platform}', 'delete', `${WIDGET}/1.0.0/linux_amd64`, {}, 200],
    ['/modules/{origin}/{namespace}/{name}/{system}', 'delete', VPC, {}, 200],
    ['/modules/{origin}/{namespace}/{name}/{system}/{version}', 'delete', `${VPC}/1.0.0`, {}, 200],
    ['/openapi.json', 'get', '/openapi.json', {}, 200],
  ]

  test.each(asks)('%s %s (%s)', async (template, method, path, options, expected) => {
    const { status, json } = await stage.ask(path, { ...options, method: method.toUpperCase() })
    expect(status).toBe(expected)
    expect(problemsWith(`/admin/api/v1${template}`, method, status, json)).toEqual([])
  })

  test('no route was left out but the two without a JSON document', () => {
    const asked = new Set(asks.map(([template, method]) => `${method.toUpperCase()} /admin/api/v1${template}`))
    const served = listRoutes(stage.app).map((route) => route.replaceAll(/:(\w+)/g, '{$1}'))
    expect(served.filter((route) => !asked.has(route))).toEqual([
      'GET /admin/api/v1/jobs/{id}/events',
      'DELETE /admin/api/v1/pins/{name}',
    ])
  })

  test('each event of a job is a JobEvent', async () => {
    const { text } = await stage.ask(`/jobs/${JOB_ID}/events`)
    const events = [...text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm)].map(([, event, data = '']) => ({
      event,
      data: JSON.parse(data),
    }))
    expect(events.map(({ event }) => event)).toEqual(['job', 'item', 'job'])
    const validate = ajv.getSchema('api#/components/schemas/JobEvent')
    for (const event of events) expect(validate?.(event), JSON.stringify(validate?.errors)).toBe(true)
  })

  test('the check itself finds what is wrong', () => {
    expect(problemsWith('/admin/api/v1/jobs', 'get', 200, { items: [{}], next: null }).join()).toContain('required')
    expect(problemsWith('/admin/api/v1/jobs', 'get', 400, { error: 1 }).join()).toContain('must be string')
    expect(problemsWith('/admin/api/v1/jobs', 'get', 200, { items: [], next: 1 })).not.toEqual([])
  })
})
