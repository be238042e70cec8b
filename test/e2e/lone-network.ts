import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'

/*
 * A network in which one port of loopback leads to a mirror, and nothing else leads anywhere: a namespace of its own,
 * with a Unix socket as the only way out. As a program, it runs inside: `node lone-network.ts SOCKET PORT FOREIGN_PORT
 * COMMAND…` serves PORT, makes sure that FOREIGN_PORT is out of reach, and runs the command.
 */

/** True if this machine lets us make such a network; says so loudly if not. */
export function loneNetworkPermitted(): boolean {
  const { status } = spawnSync('unshare', ['-rn', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' })
  if (status !== 0) console.warn('SKIPPED: network namespaces are not permitted here; no closed network is tested')
  return status === 0
}

/** The outer end. `runner` runs a command inside, for `createWorkspace`. */
export interface LoneNetwork extends AsyncDisposable {
  readonly runner: readonly string[]
}

/** Makes the way from a socket at `path` to `port` of this machine's loopback; `foreignPort` must not be reachable. */
export async function openLoneNetwork(path: string, port: number, foreignPort: number): Promise<LoneNetwork> {
  const server = await forward({ path }, { host: '127.0.0.1', port })
  const program = [process.execPath, fileURLToPath(import.meta.url), path, String(port), String(foreignPort)]
  return {
    runner: ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...program],
    async [Symbol.asyncDispose]() {
      server.close()
      await rm(path, { force: true })
    },
  }
}

type End = { readonly path: string } | { readonly host: string; readonly port: number }

async function forward(from: End, to: End): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(to)
    client.pipe(upstream).pipe(client)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
  })
  server.listen(from)
  await once(server, 'listening')
  return server
}

async function isReachable(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function runInside([path = '', port, foreignPort, command = '', ...args]: readonly string[]): Promise<number> {
  if (await isReachable(Number(foreignPort))) throw new Error('this network leads further than to the mirror')
  await forward({ host: '127.0.0.1', port: Number(port) }, { path })
  const child = spawn(command, args, { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code ?? 1
}

if (import.meta.main) process.exit(await runInside(process.argv.slice(2)))
