import { createServer } from 'node:net'
import { findHealthProblem } from '../health-check.ts'
import { errnoOf } from '../store/disk/storage-error.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Whether the mirror answers on its port, or, while it does not run, could listen there. */
export async function checkListener({ config, isRunning }: CheckContext): Promise<readonly Finding[]> {
  const about = findingsAbout('listener')
  const { host, port } = config.listen
  if (port === 0) return [about.ok('listen.port is 0: any free port is taken')]
  if (!isRunning) return [await judgePort({ check: 'listener', key: 'listen', host, port })]
  const problem = await findHealthProblem(config)
  if (problem === undefined) return [about.ok(`the mirror answers on ${host} port ${port}`)]
  const remedy = 'Was the configuration changed since it was started? Look into its log, and start it again.'
  return [about.problem(`the mirror runs, but ${problem}`, remedy)]
}

/** A port that should be free. */
export interface WantedPort {
  readonly check: string
  /** The key of the configuration that names it. */
  readonly key: 'listen' | 'admin.listen'
  readonly host: string
  readonly port: number
}

/** Tries whether one could listen there, for a moment. */
export async function judgePort({ check, key, host, port }: WantedPort): Promise<Finding> {
  const about = findingsAbout(check)
  const error = await tryToListen(host, port)
  if (error === undefined) return about.ok(`${host} port ${port} is free`)
  const place = `cannot listen on ${host} port ${port}`
  switch (errnoOf(error)) {
    case 'EADDRINUSE':
      return about.problem(
        `${place}: another process listens there, which is no mirror with this data folder`,
        `Stop it, or set ${key}.port.`,
      )
    case 'EACCES':
      return about.problem(`${place}: this user may not`, `Use a port from 1024 up, or run this as the mirror's user.`)
    case 'EADDRNOTAVAIL':
      return about.problem(`${place}: this machine has no such address`, `Set ${key}.host.`)
    default:
      return about.problem(`${place}: ${error.message}`, `Set ${key}.host and ${key}.port.`)
  }
}

function tryToListen(host: string, port: number): Promise<Error | undefined> {
  const { promise, resolve } = Promise.withResolvers<Error | undefined>()
  const server = createServer()
  server.once('error', resolve)
  server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  return promise
}
