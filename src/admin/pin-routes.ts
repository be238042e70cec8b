import type { OpenAPIHono } from '@hono/zod-openapi'
import { z } from 'zod'
import type { AdminEnv } from './admin-env.ts'
import type { Operations } from './operations.ts'
import { pageOf, pageRequest } from './paging.ts'
import { answer, body, createRoute, createRoutes, failure, noQuery, plain } from './route.ts'
import { PinName, PinPage, PinRequest, PinSet } from './schema/changes.ts'
import { pageQuery } from './schema/common.ts'

const tags = ['pins']
const params = z.object({ name: PinName })

const listPins = createRoute({
  method: 'get',
  path: '/pins',
  operationId: 'listPins',
  summary: 'The sets of pins, by name.',
  tags,
  request: { query: pageQuery },
  responses: { 200: answer(PinPage, 'A page of sets.'), default: failure },
})

const showPin = createRoute({
  method: 'get',
  path: '/pins/{name}',
  operationId: 'showPin',
  summary: 'One set of pins.',
  tags,
  request: { params, query: noQuery },
  responses: { 200: answer(PinSet, 'The set.'), default: failure },
})

const pin = createRoute({
  method: 'put',
  path: '/pins/{name}',
  operationId: 'pin',
  summary: 'Makes or replaces a set of items that eviction and purge leave alone.',
  tags,
  request: { params, query: noQuery, body: body(PinRequest) },
  responses: { 200: answer(PinSet, 'The set as it is now.'), default: failure },
})

const unpin = createRoute({
  method: 'delete',
  path: '/pins/{name}',
  operationId: 'unpin',
  summary: 'Deletes a set of pins. The items stay until eviction or a purge takes them.',
  tags,
  request: { params, query: noQuery },
  responses: { 204: { description: 'It is gone.' }, default: failure },
})

/** Sets of items that stay: `/pins`. */
export function createPinRoutes({ pins }: Pick<Operations, 'pins'>): OpenAPIHono<AdminEnv> {
  const routes = createRoutes()
  routes.openapi(listPins, async (context) => {
    return context.json(pageOf<PinSet>(await pins.list(pageRequest(context.req.valid('query')))), 200)
  })
  routes.openapi(showPin, async (context) =>
    context.json(plain<PinSet>(await pins.get(context.req.valid('param').name)), 200),
  )
  routes.openapi(pin, async (context) => {
    const { name } = context.req.valid('param')
    context.var.change.target = name
    return context.json(plain<PinSet>(await pins.put(name, context.req.valid('json'))), 200)
  })
  routes.openapi(unpin, async (context) => {
    const { name } = context.req.valid('param')
    context.var.change.target = name
    await pins.delete(name)
    return context.body(null, 204)
  })
  return routes
}
