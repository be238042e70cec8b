import { readFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import type { TestMirror } from './mirror-fixture.ts'

/** A request to the admin API of a mirror. */
export interface AdminAsk {
  readonly method?: string
  /** Sent as JSON; text as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Null: none. Default: what lies in the state folder. */
  readonly token?: string | null
}

export interface AdminAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape is what they test
  readonly json: any
}

type Mirror = Pick<TestMirror, 'adminUrl' | 'caPem' | 'dataDir'>

/** The token that the mirror made. */
export async function readToken({ dataDir }: Pick<TestMirror, 'dataDir'>): Promise<string> {
  return (await readFile(join(dataDir, 'state', 'admin-token'), 'utf8')).trim()
}

/** Asks the admin API; `path` is below its base, or absolute where it begins with two slashes. */
export async function askAdmin(mirror: Mirror, path: string, options: AdminAsk = {}): Promise<AdminAnswer> {
  const answer = await openAdmin(mirror, path, options)
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const isJson = answer.headers['content-type']?.startsWith('application/json') === true && text !== ''
  const { statusCode: status = 0, headers } = answer
  return { status, headers, text, json: isJson ? JSON.parse(text) : undefined }
}

/** The same, with the body left to be read. */
export async function openAdmin(mirror: Mirror, path: string, options: AdminAsk = {}): Promise<IncomingMessage> {
  const { method = 'GET', body, headers = {} } = options
  const token = options.token === undefined ? await readToken(mirror) : options.token
  const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body)
  const { send, ...where } = targetOf(mirror)
  return new Promise((resolve, reject) => {
    const asked = send(
      {
        ...where,
        path: path.startsWith('//') ? path.slice(1) : `/admin/api/v1${path}`,
        method,
        agent: false,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(text === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      },
      resolve,
    )
    asked.on('error', reject)
    asked.end(text)
  })
}

function targetOf({ adminUrl, caPem }: Mirror): RequestOptions & { ca?: string; send: typeof httpsRequest } {
  if (adminUrl.startsWith('unix:')) return { send: httpRequest, socketPath: adminUrl.slice('unix:'.length) }
  const { port, protocol } = new URL(adminUrl)
  const send = protocol === 'https:' ? httpsRequest : httpRequest
  return { send, host: '127.0.0.1', port, ca: caPem, ...(protocol === 'https:' ? { servername: 'localhost' } : {}) }
}
