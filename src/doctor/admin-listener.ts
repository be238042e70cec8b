import { lstat, readFile, stat } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { dirname, join } from 'node:path'
import { ADMIN_TOKEN_FILE } from '../admin-token.ts'
import type { AdminAddress } from '../config/admin-schema.ts'
import { trustOurs } from '../health-check.ts'
import { errnoOf } from '../store/disk/storage-error.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, type FindingsAbout, findingsAbout } from './finding.ts'
import { judgePort } from './public-listener.ts'

/** Whether the operator's API answers those who know the token, and nobody else; or could listen. */
export async function checkAdmin(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const about = findingsAbout('admin API')
  const { admin } = context.config
  if (admin === 'off') return [about.ok('admin is off')]
  const folder = 'socket' in admin.listen ? await judgeSocketFolder(admin.listen.socket, about) : undefined
  if (folder !== undefined) return [folder]
  if ('port' in admin.listen && admin.listen.port === 0)
    return [about.ok('admin.listen.port is 0: any free port is taken')]
  if (!context.isRunning) return [await judgeFree(admin.listen, about)]
  return [await judgeRunning(context, admin.listen, about, signal)]
}

async function judgeFree(listen: AdminAddress, about: FindingsAbout): Promise<Finding> {
  if ('port' in listen) return judgePort({ check: 'admin API', key: 'admin.listen', ...listen })
  return about.ok(`${listen.socket} is made when the mirror starts`)
}

async function judgeRunning(
  { config, env }: CheckContext,
  listen: AdminAddress,
  about: FindingsAbout,
  signal: AbortSignal,
): Promise<Finding> {
  const place = 'socket' in listen ? listen.socket : `${listen.host} port ${listen.port}`
  const configured = config.admin === 'off' ? undefined : config.admin.token
  const file = join(config.stateDir, ADMIN_TOKEN_FILE)
  const token = configured ?? (await readFile(file, 'utf8').catch(() => '')).trim()
  if (token === '') {
    return about.problem(
      `no token is configured, and ${file} cannot be read`,
      "Run this as the mirror's user, or set admin.token.",
    )
  }
  try {
    const isPlain = config.listen.tls === 'off' || 'socket' in listen
    const send = isPlain ? httpRequest : httpsRequest
    const target = { ...targetOf(listen), signal }
    const options = isPlain ? target : await trustOurs(config, target)
    const stranger = await ask(send, options)
    const known = await ask(send, { ...options, headers: { authorization: `Bearer ${token}` } })
    if (stranger !== 401) {
      return about.problem(
        `${place} answers ${stranger} to who has no token: it is no admin API of a mirror`,
        'Stop what listens there, or set admin.listen.port.',
      )
    }
    if (known !== 401) return about.ok(`it answers on ${place}, to who has the token`)
    const source =
      configured === undefined
        ? file
        : env.TERRAMIRROR_ADMIN_TOKEN
          ? 'admin.token or TERRAMIRROR_ADMIN_TOKEN'
          : 'admin.token'
    return about.problem(
      `${place} does not take the token of ${source}`,
      'The mirror was started with another one: start it again, or say the token that it has.',
    )
  } catch (error) {
    const reason = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
    return about.problem(
      `the mirror runs, but ${place} does not answer: ${reason}`,
      'Was admin.listen changed since the start? Start the mirror again, and look into its log.',
    )
  }
}

function targetOf(listen: AdminAddress): RequestOptions {
  const common = { path: '/admin/api/v1/origins', agent: false }
  if ('socket' in listen) return { ...common, socketPath: listen.socket }
  const { host, port } = listen
  return { ...common, host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port }
}

/** As the mirror itself demands it. */
async function judgeSocketFolder(path: string, about: FindingsAbout): Promise<Finding | undefined> {
  const folder = dirname(path)
  const facts = await stat(folder).catch(() => undefined)
  if (facts !== undefined && (facts.mode & 0o022) !== 0) {
    return about.problem(
      `other users can write ${folder}, the folder of admin.listen.socket`,
      `Name a folder below it: ${join(folder, 'terramirror', 'admin.sock')}.`,
    )
  }
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || found.isSocket()) return undefined
  return about.problem(`${path} is there and is no socket`, 'Move it away, or set admin.listen.socket.')
}

function ask(send: typeof httpsRequest, options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = send(options, (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    request.on('error', reject)
    request.end()
  })
}
