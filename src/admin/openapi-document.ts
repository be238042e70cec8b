import { OpenAPIHono } from '@hono/zod-openapi'
import { z } from 'zod'
import type { AdminEnv } from './admin-env.ts'
import { answer, createRoute, createRoutes, failure, noQuery } from './route.ts'
import { PinRequest, PinSet, PurgeResult, RefreshRequest, RefreshResult, VerifyRequest } from './schema/changes.ts'
import { Authentication, Problem } from './schema/common.ts'
import { Explanation, Finding } from './schema/explain.ts'
import { Job, JobEvent, JobItem } from './schema/jobs.ts'
import { HeldModule, HeldPackage, OriginState, Statistics } from './schema/stock.ts'
import { WarmPlan, WarmRequest } from './schema/warm.ts'

/** What has a name of its own in the document. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  Problem,
  Authentication,
  Job,
  JobItem,
  JobEvent,
  WarmRequest,
  WarmPlan,
  VerifyRequest,
  HeldPackage,
  HeldModule,
  OriginState,
  Statistics,
  Finding,
  Explanation,
  PinRequest,
  PinSet,
  PurgeResult,
  RefreshRequest,
  RefreshResult,
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const route = createRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'showOpenApi',
  summary: 'This document.',
  tags: ['document'],
  request: { query: noQuery },
  responses: { 200: answer(z.looseObject({ openapi: z.string() }), 'OpenAPI 3.1.'), default: failure },
})

/** `/openapi.json`: all routes of the app, made of the very schemas that requests are held against. */
export function createDocumentRoutes(app: OpenAPIHono<AdminEnv>, version: string): OpenAPIHono<AdminEnv> {
  const routes = createRoutes()
  let document: ReturnType<typeof describeApp> | undefined
  routes.openapi(route, (context) => {
    document ??= describeApp(app, version)
    return context.json(document, 200)
  })
  return routes
}

/** The OpenAPI 3.1 document of an app. */
function describeApp(app: OpenAPIHono<AdminEnv>, version: string) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Terramirror admin API',
      version,
      description: 'What an operator asks of a mirror and tells it. Every request needs the bearer token.',
    },
  })
  const names = new Map(Object.entries(describeNamed()).map(([name, schema]) => [JSON.stringify(schema), name]))
  const schemas = Object.fromEntries(
    Array.from(names, ([text, name]) => [name, referToNamed(JSON.parse(text), names, name)]),
  )
  const { openapi, info, paths } = JSON.parse(JSON.stringify(document))
  return {
    openapi: String(openapi),
    info: info as Json,
    security: [{ token: [] }],
    paths: referToNamed(paths, names),
    components: { schemas, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  }
}

/** Each named schema as the generator writes it inline. */
function describeNamed(): Readonly<Record<string, unknown>> {
  const app = new OpenAPIHono()
  for (const [name, schema] of Object.entries(NAMED)) {
    app.openAPIRegistry.registerPath({ method: 'get', path: `/${name}`, responses: { 200: answer(schema, name) } })
  }
  const paths = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: '', version: '' } }).paths ?? {}
  return Object.fromEntries(
    Object.keys(NAMED).map((name) => {
      const described = paths[`/${name}`]?.get?.responses?.['200']
      return [name, described?.content?.['application/json']?.schema]
    }),
  )
}

/** Puts a reference wherever a named schema stands, but for the one that is `being` described. */
function referToNamed(value: Json, names: ReadonlyMap<string, string>, being?: string): Json {
  if (typeof value !== 'object' || value === null) return value
  const name = names.get(JSON.stringify(value))
  if (name !== undefined && name !== being) return { $ref: `#/components/schemas/${name}` }
  if (Array.isArray(value)) return value.map((item) => referToNamed(item, names))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, referToNamed(item, names)]))
}
