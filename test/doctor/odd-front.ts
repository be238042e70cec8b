import { once } from 'node:events'
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { createTestAuthority } from '../tls-fixture.ts'

/** An answer on its way through a front. */
export interface PassedAnswer {
  readonly path: string
  status: number
  headers: OutgoingHttpHeaders
  body: Buffer
}

/** A TLS front before a mirror, that alters what it should leave alone. */
export interface OddFront extends AsyncDisposable {
  readonly url: string
  readonly caPem: string
}

/** Starts a front at `https://localhost:PORT/`; `alter` changes each answer, which has been read whole. */
export async function startOddFront(target: string, alter: (answer: PassedAnswer) => void): Promise<OddFront> {
  const authority = await createTestAuthority()
  const { hostname, port } = new URL(target)
  const server = createServer(await authority.issue(['localhost']), (incoming, outgoing) => {
    const { url: path = '/', method, headers } = incoming
    const passed = httpRequest({ hostname, port, path, method, headers, agent: false }, async (answer) => {
      const body = await buffer(answer)
      const altered: PassedAnswer = { path, status: answer.statusCode ?? 0, headers: { ...answer.headers }, body }
      alter(altered)
      outgoing.writeHead(altered.status, altered.headers).end(method === 'HEAD' ? undefined : altered.body)
    })
    passed.on('error', () => outgoing.destroy())
    passed.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    caPem: authority.caPem,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
