import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import { createTestAuthority } from '../tls-fixture.ts'

/** A running TLS front, with the CA that its clients must trust. */
export interface TlsFront extends AsyncDisposable {
  /** `https://localhost:PORT/some/prefix/` */
  readonly url: string
  readonly caPem: string
  /** Paths that did not lie below the prefix; they got a 404. */
  readonly strays: readonly string[]
  /** Headers of every request, oldest first. */
  readonly seen: readonly IncomingHttpHeaders[]
}

interface FrontOptions {
  readonly prefix: string
  readonly target: string
  /** Sends clients that ask for service discovery at the root below the prefix; default they stray. */
  readonly redirectDiscovery?: boolean
}

/**
 * A front proxy as operators put before a mirror with `tls: off`: ends TLS, cuts `prefix` (`/some/prefix`) off and passes
 * the rest on to `target` (`http://127.0.0.1:PORT/`). Nothing in answers is rewritten.
 */
export async function startTlsFront({ prefix, target, redirectDiscovery = false }: FrontOptions): Promise<TlsFront> {
  const authority = await createTestAuthority()
  const strays: string[] = []
  const seen: IncomingHttpHeaders[] = []
  const { hostname, port } = new URL(target)
  const server = createServer(await authority.issue(['localhost', '127.0.0.1']), (incoming, outgoing) => {
    const { url = '/', method, headers } = incoming
    seen.push(headers)
    if (redirectDiscovery && url === '/.well-known/terraform.json') {
      outgoing.writeHead(302, { location: `${prefix}${url}` }).end()
      return
    }
    if (!url.startsWith(`${prefix}/`)) {
      strays.push(url)
      outgoing.writeHead(404).end()
      return
    }
    const passed = httpRequest({ hostname, port, path: url.slice(prefix.length), method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => outgoing.destroy())
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    incoming.pipe(passed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the front does not listen on a port')
  return {
    url: `https://localhost:${address.port}${prefix}/`,
    caPem: authority.caPem,
    strays,
    seen,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
