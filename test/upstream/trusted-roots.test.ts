import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createTestAuthority } from '../tls-fixture.ts'
import { documentRequest, failureOf, origin, startClient, startServer, testAuthority } from './origin-fixture.ts'

const url = `https://${origin}/doc`

test('a private authority fails by default, and the error says certificate, host and caFile', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using client = await startClient(server, { ca: [] })
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.code).toBe('UPSTREAM_TLS')
  expect(error.message).toContain('certificate')
  expect(error.message).toContain(origin)
  expect(error.message).toContain('caFile')
  expect(String(error.cause)).not.toContain('Node.js')
  expect(client.observed.retried).toEqual([])
})

test('a named authority is added to the others, not put in their place', async () => {
  const publicAuthority = await createTestAuthority()
  await using inner = await startServer((_request, response) => response.end('{}'))
  await using outer = await startServer((_request, response) => response.end('{}'), { authority: publicAuthority })
  await using client = await startClient(undefined, {
    allowPrivateAddresses: true,
    ca: [publicAuthority.caPem],
    hosts: new Map([[`localhost:${inner.port}`, { ca: (await testAuthority()).caPem }]]),
  })
  for (const { port } of [inner, outer]) {
    expect((await client.fetchDocument(documentRequest(`https://localhost:${port}/`))).status).toBe(200)
  }
  // The authority of one host holds for no other name of the same server.
  const error = await failureOf(client.fetchDocument(documentRequest(`https://127.0.0.1:${inner.port}/`)))
  expect(error.code).toBe('UPSTREAM_TLS')
})

test('the public roots stay trusted beside a named authority', async () => {
  // Node reads NODE_EXTRA_CA_CERTS into its default roots, so a process of its own has a "public" authority of ours.
  const publicAuthority = await createTestAuthority()
  await using server = await startServer((_request, response) => response.end('{}'), { authority: publicAuthority })
  await using folder = await mkdtempDisposable(join(tmpdir(), 'roots-'))
  const pem = join(folder.path, 'public.pem')
  await writeFile(pem, publicAuthority.caPem)
  const script = `
    const { startClient, documentRequest } = await import(${JSON.stringify(new URL('origin-fixture.ts', import.meta.url).href)})
    const client = await startClient(undefined, { allowPrivateAddresses: true })
    console.log((await client.fetchDocument(documentRequest('https://localhost:${server.port}/'))).status)
    await client.close()`
  const child = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: pem },
  })
  expect((await child).stdout.trim()).toBe('200')
})
