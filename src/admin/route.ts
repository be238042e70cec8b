import { createRoute as createTypedRoute, OpenAPIHono, type RouteConfig } from '@hono/zod-openapi'
import { z } from 'zod'
import type { AdminEnv } from './admin-env.ts'
import type { Fixed } from './operations.ts'
import { invalidRequest } from './request-problems.ts'
import { Problem } from './schema/common.ts'

const PARTS: Readonly<Record<string, 'body' | 'query' | 'path'>> = { json: 'body', query: 'query', param: 'path' }

/** An empty set of routes. What does not fit a route's schemas is refused with all that is wrong with it. */
export function createRoutes(): OpenAPIHono<AdminEnv> {
  return new OpenAPIHono<AdminEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidRequest(PARTS[result.target] ?? 'body', result.error.issues)
    },
  })
}

/**
 * A route with its place in the OpenAPI document. `operationId` is also the action in the audit. A route without a
 * `query` takes none.
 */
export function createRoute<
  Path extends string,
  Config extends Omit<RouteConfig, 'path'> & { path: Path; operationId: string; summary: string },
>(config: Config) {
  return createTypedRoute(config)
}

/** The query of a route that takes none. */
export const noQuery = z.strictObject({})

/** A JSON body. */
export function body<Schema extends z.ZodType>(schema: Schema) {
  return { required: true, content: { 'application/json': { schema } } } as const
}

/** An answer with a JSON document. */
export function answer<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { 'application/json': { schema } } } as const
}

/** Every answer that is no success. */
export const failure = answer(Problem, 'What went wrong, why, and what to do.')

/** A document as Hono's types take it: nobody changes it there either. */
export function plain<T>(document: Fixed<T>): T {
  return document as T
}
