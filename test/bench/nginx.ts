import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Service } from './service.ts'
import { pathOf } from './tools.ts'

/** How to start nginx. */
export interface NginxOptions {
  /** For its files; made if it is not there. */
  readonly folder: string
  readonly cpu?: string
  readonly certificate: { readonly certFile: string; readonly keyFile: string; readonly caFile: string }
  /** `server` blocks and what else stands inside `http`. */
  readonly http: string
  /** A port that one of them listens on. */
  readonly port: number
}

/** Starts nginx with one worker. Disposing of it ends it. @throws Error with its log if it does not listen */
export async function startNginx(options: NginxOptions): Promise<Service> {
  const { folder, cpu, port } = options
  await mkdir(folder, { recursive: true })
  const configFile = join(folder, 'nginx.conf')
  const logFile = join(folder, 'error.log')
  await writeFile(configFile, configuration(options))
  const command = [pathOf('nginx'), '-p', folder, '-c', configFile, '-e', logFile] as const
  const nginx = new Service({ command: [...command], logFile, ...(cpu === undefined ? {} : { cpu }) })
  for (let tries = 0; tries < 200; tries++) {
    if (await listens(port)) return nginx
    await sleep(25)
  }
  await nginx[Symbol.asyncDispose]()
  throw new Error(`nginx does not listen:\n${await readFile(logFile, 'utf8')}`)
}

function configuration({ folder, certificate, http }: NginxOptions): string {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  return `
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid ${folder}/nginx.pid;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 4096; }
http {
  ${temp.join('\n  ')}
  types { application/json json; application/zip zip; }
  default_type application/octet-stream;
  access_log off;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=1000;
  gzip_static on;
  keepalive_timeout 65;
  keepalive_requests 1000000000;
  ssl_certificate ${certificate.certFile};
  ssl_certificate_key ${certificate.keyFile};
  ssl_protocols TLSv1.3;
  ${http}
}
`
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
