import type { OpenAPIHono } from '@hono/zod-openapi'
import { z } from 'zod'
import type { AdminEnv } from './admin-env.ts'
import { sendJobEvents } from './job-events.ts'
import type { Operations } from './operations.ts'
import { pageOf, pageRequest } from './paging.ts'
import { answer, body, createRoute, createRoutes, failure, noQuery, plain } from './route.ts'
import { VerifyRequest } from './schema/changes.ts'
import { pageQuery } from './schema/common.ts'
import { Job, type JobItem, JobPage, JobQuery, JobWithItems } from './schema/jobs.ts'
import { WarmPlan, WarmRequest, WarmStarted } from './schema/warm.ts'

const params = z.object({ id: z.string().min(1).max(64) })
const tags = ['jobs']

const list = createRoute({
  method: 'get',
  path: '/jobs',
  operationId: 'listJobs',
  summary: 'The jobs, the newest first.',
  tags,
  request: { query: pageQuery },
  responses: { 200: answer(JobPage, 'A page of jobs.'), default: failure },
})

const show = createRoute({
  method: 'get',
  path: '/jobs/{id}',
  operationId: 'showJob',
  summary: 'One job with a page of its items.',
  tags,
  request: { params, query: JobQuery },
  responses: { 200: answer(JobWithItems, 'The job.'), default: failure },
})

const events = createRoute({
  method: 'get',
  path: '/jobs/{id}/events',
  operationId: 'followJob',
  summary: 'What happens to a job, as server-sent events, from how it stands now to its end.',
  description:
    'Each event is a `JobEvent`: `event:` names its kind, `data:` is its document in one line. The last one is a `job` in a final state; then the stream ends.',
  tags,
  request: { params, query: noQuery },
  responses: {
    200: { description: 'The events.', content: { 'text/event-stream': { schema: z.string() } } },
    default: failure,
  },
})

const cancel = createRoute({
  method: 'delete',
  path: '/jobs/{id}',
  operationId: 'cancelJob',
  summary: 'Ends a job. What it has brought stays.',
  tags,
  request: { params, query: noQuery },
  responses: { 200: answer(Job, 'The job; one that had ended stays as it was.'), default: failure },
})

const warm = createRoute({
  method: 'post',
  path: '/warm',
  operationId: 'warm',
  summary: 'Fetches providers and modules before anybody asks for them; or tells what that would fetch.',
  tags,
  request: { query: noQuery, body: body(WarmRequest) },
  responses: {
    200: answer(WarmPlan, 'With `dryRun`: what would be fetched.'),
    202: answer(WarmStarted, 'The job that does it; `Location` is its path.'),
    default: failure,
  },
})

const verify = createRoute({
  method: 'post',
  path: '/verify',
  operationId: 'verify',
  summary: 'Hashes what is held again.',
  tags,
  request: { query: noQuery, body: body(VerifyRequest) },
  responses: { 202: answer(Job, 'The job that does it; `Location` is its path.'), default: failure },
})

/** What the routes of jobs are made of. */
export type JobRouteParts = Pick<Operations, 'jobs' | 'warm' | 'verify'> & {
  /** Where the routes are, for `Location`. */
  readonly base: string
  /** Fires when the mirror stops: streams of events end. */
  readonly stopping: AbortSignal
}

/** Jobs, and what begins them: `/jobs`, `/warm`, `/verify`. */
export function createJobRoutes({ jobs, base, stopping, ...operations }: JobRouteParts): OpenAPIHono<AdminEnv> {
  const routes = createRoutes()
  routes.openapi(list, async (context) => {
    return context.json(pageOf<Job>(await jobs.list(pageRequest(context.req.valid('query')))), 200)
  })
  routes.openapi(show, async (context) => {
    const { id } = context.req.valid('param')
    const { outcome, ...query } = context.req.valid('query')
    const job = await jobs.get(id)
    const items = await jobs.items(id, { ...pageRequest(query), ...(outcome === undefined ? {} : { outcome }) })
    return context.json({ ...plain<Job>(job), ...pageOf<JobItem>(items) }, 200)
  })
  routes.openapi(events, async (context) => {
    const { id } = context.req.valid('param')
    // A job that is not there is a problem, not a stream that ends.
    await jobs.get(id)
    return sendJobEvents(context, (signal) => jobs.events(id, signal), stopping)
  })
  routes.openapi(cancel, async (context) => {
    const { id } = context.req.valid('param')
    context.var.change.target = id
    return context.json(plain<Job>(await jobs.cancel(id)), 200)
  })
  routes.openapi(warm, async (context) => {
    const request = context.req.valid('json')
    context.var.change.isChange = !request.dryRun
    if (request.dryRun) {
      const signal = AbortSignal.any([context.req.raw.signal, stopping])
      return context.json(plain<WarmPlan>(await operations.warm.plan(request, signal)), 200)
    }
    context.var.change.target = describeWarm(request)
    const job = await operations.warm.start(request)
    context.var.change.target += `: job ${job.id}`
    return context.json(plain<Job>(job), 202, { Location: `${base}/jobs/${job.id}` })
  })
  routes.openapi(verify, async (context) => {
    const request = context.req.valid('json')
    context.var.change.target = request.prefix === '' ? 'everything' : request.prefix
    const job = await operations.verify.start(request)
    context.var.change.target += `: job ${job.id}`
    return context.json(plain<Job>(job), 202, { Location: `${base}/jobs/${job.id}` })
  })
  return routes
}

function describeWarm({ providers, modules, lockFiles, configuration }: WarmRequest): string {
  const counts = {
    providers: providers.length,
    modules: modules.length,
    'lock files': lockFiles.length,
    'files of a configuration': Object.keys(configuration).length,
  }
  const parts = Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]))
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}
