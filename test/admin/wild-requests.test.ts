import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AdminStage, openAdminStage } from './admin-stage.ts'
import { type ApiDocument, wildRequest } from './wild-requests.ts'

let stage: AdminStage
let document: ApiDocument

beforeAll(async () => {
  stage = await openAdminStage()
  document = (await stage.ask('/openapi.json')).json
})
afterAll(() => stage[Symbol.asyncDispose]())

test('no request gives 500; every refusal is a problem with a code and the id of the request', async () => {
  const statuses = new Map<number, number>()
  const property = fc.asyncProperty(wildRequest(document), async ({ method, path, headers, body }) => {
    const hasBody = body !== undefined && body !== '' && method !== 'GET' && method !== 'HEAD'
    const {
      status,
      json,
      headers: answered,
    } = await stage.ask(`/${path}`, {
      method,
      headers,
      ...(hasBody ? { body } : {}),
    })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    expect(status).toBeLessThan(500)
    if (status < 400 || method === 'HEAD') return
    expect(json).toMatchObject({ error: expect.any(String), code: expect.stringMatching(/^[A-Z_]+$/) })
    expect(json.request_id).toBe(answered['x-request-id'])
  })
  await fc.assert(property, { numRuns: 3_000 })
  // Else nothing but refusals of the outermost kind would be tested.
  for (const status of [200, 202, 400, 404, 405]) expect(statuses.get(status), String(status)).toBeGreaterThan(20)
  expect(stage.logText).not.toContain('"level":"error"')
}, 120_000)
