/**
 * A process that warms: `warm-child.ts FOLDER [REQUEST]`. It starts a job with the request (JSON), or goes on with the
 * one that is there; prints `job ID`, then `decided N` whenever that has changed, and `ended STATE`.
 */
import { silentLog } from '../../../src/log.ts'
import { WarmRequest } from '../../../src/mirror/warm/warm-request.ts'
import { openWarmHost } from './warm-host.ts'

const [folder = '', request] = process.argv.slice(2)
const host = await openWarmHost(folder, silentLog())
const started = request && (await host.jobs.start(host.warm.kind, WarmRequest.parse(JSON.parse(request))))
const { id } = started || host.jobs.list({ limit: 1 }).items[0] || { id: 'none' }
process.stdout.write(`job ${id}\n`)
for await (const { event, data } of host.jobs.events(id, new AbortController().signal)) {
  if (event === 'job') process.stdout.write(`decided ${data.progress.done}\n`)
}
await host[Symbol.asyncDispose]()
process.stdout.write(`ended ${host.jobs.get(id).state}\n`)
