import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { createServer } from 'node:https'
import { createTestAuthority } from '../tls-fixture.ts'

/** A running TLS front, with the CA that its clients must trust. */
export interface TlsFront extends AsyncDisposable {
  /** `https://localhost:PORT/some/prefix/` */
  readonly url: string
  readonly caPem: string
  /** Paths that did not lie below the prefix; they got a 404. */
  readonly strays: readonly string[]
}

/**
 * A front proxy as operators put before a mirror with `tls: off`: ends TLS, cuts `prefix` (`/some/prefix`) off and passes
 * the rest on to `target` (`http://127.0.0.1:PORT/`). Nothing in answers is rewritten.
 */
export async function startTlsFront({ prefix, target }: { prefix: string; target: string }): Promise<TlsFront> {
  const authority = await createTestAuthority()
  const strays: string[] = []
  const { hostname, port } = new URL(target)
  const server = createServer(await authority.issue(['localhost', '127.0.0.1']), (incoming, outgoing) => {
    const { url = '/', method, headers } = incoming
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
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
