import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { codeBlocksIn } from '../ui/page-text.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createWorkspace, terraformAvailable } from './terraform-cli.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8' }
const CLIENTS: Record<string, string>[] = [
  {},
  { accept: '*/*' },
  { accept: 'application/json' },
  { accept: 'application/json, text/html;q=0.5' },
]
const PAGE = 'text/html; charset=utf-8'
const SYSTEM_ROOTS = '/etc/ssl/certs/ca-certificates.crt'

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: ['linux_amd64', 'darwin_arm64'] })
  mirror = await startMirror({ origin })
})
afterAll(async () => {
  await mirror?.[Symbol.asyncDispose]()
  await origin?.[Symbol.asyncDispose]()
})

async function page(path = '/', headers: Record<string, string> = BROWSER): Promise<string> {
  return (await mirror.ask(path, { headers })).body.toString()
}

describe('the page at /', () => {
  test('everybody gets it, with the address that was asked in its configurations', async () => {
    for (const headers of [BROWSER, ...CLIENTS]) {
      const answer = await mirror.ask('/', { headers })
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toBe(PAGE)
      expect(answer.body.toString()).toContain(`url = &quot;${mirror.url}providers/&quot;`)
    }
  })

  test('its headers keep everything else away', async () => {
    const { headers } = await mirror.ask('/')
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
    })
  })

  test('HEAD answers as GET would', async () => {
    for (const path of ['/', '/ca.pem', '/docs/limits.md', '/providers/']) {
      const whole = await mirror.ask(path, { headers: BROWSER })
      const head = await mirror.ask(path, { headers: BROWSER, method: 'HEAD' })
      expect([head.status, head.body.length]).toEqual([whole.status, 0])
      for (const name of ['content-type', 'content-length', 'content-security-policy', 'cache-control', 'vary']) {
        expect(head.headers[name], `${path} ${name}`).toBe(whole.headers[name])
      }
      expect(whole.headers['content-length']).toBe(String(whole.body.length))
    }
  })

  test.each(['evil.example/"><script>', '<b>.example', 'a!b.example', 'user@evil.example', 'x'.repeat(300), '[::1'])(
    'a Host that is none is not repeated: %s',
    async (host) => {
      const answer = await mirror.ask('/', { headers: { ...BROWSER, host } })
      expect(answer.body.toString()).not.toContain(host.slice(0, 200))
      expect(answer.body.toString()).not.toContain('evil.example')
    },
  )

  test('it counts what it holds', async () => {
    await vi.waitFor(async () => expect(await page()).toContain('<span>0 packages held</span>'), 15_000)
    for (const platform of ['linux_amd64', 'darwin_arm64']) await mirror.archive('acme/widget', '1.0.0', platform)
    expect(await page()).toMatch(/<span>2 packages held<\/span> <span>[1-9][\d.]* kB<\/span>/)
    await mirror.restart()
    await vi.waitFor(async () => expect(await page()).toContain('<span>2 packages held</span>'), 15_000)
  })
})

describe('a path at which nothing is', () => {
  const paths = [
    '/providers/',
    '/providers',
    '/v1/providers/',
    '/registry.example.test/acme/widget/index.json',
    '/x-secret-x',
  ]
  test.each(paths)('%s is a 404: the page for browsers, JSON for clients', async (path) => {
    const shown = await mirror.ask(path, { headers: BROWSER })
    expect([shown.status, shown.headers['content-type'], shown.headers.vary]).toEqual([404, PAGE, 'Accept'])
    expect(shown.body.toString()).toContain(`<code>${mirror.url}providers/</code>`)
    expect(shown.body.toString()).not.toContain('x-secret-x')
    for (const headers of CLIENTS) {
      const told = await mirror.ask(path, { headers })
      expect([told.status, told.headers['content-type']]).toEqual([404, 'application/json'])
      expect(told.json()).toMatchObject({ code: 'ROUTE_NOT_FOUND', base_url: `${mirror.url}providers/` })
    }
  })

  test('a base URL is told from a wrong path', async () => {
    for (const path of ['/providers/', '/providers', '/v1/providers/registry.example.test/', '/v1/providers']) {
      expect(await page(path), path).toContain('This path is for clients, not for browsers.')
    }
    expect(await page('/elsewhere')).toContain('Nothing is served at this path.')
  })

  test('what speaks the registry protocol is led to its base URL', async () => {
    const html = await page('/v1/providers/acme/widget/versions')
    expect(html).toContain(`<code>${mirror.url}v1/providers/REGISTRY/</code>`)
    expect(html).toContain('where REGISTRY is the host of the source addresses')
    expect(await page('/providers/')).not.toContain('REGISTRY')
  })

  test('refusals of what is served stay JSON for browsers too', async () => {
    const answer = await mirror.ask('/providers/elsewhere.example/acme/widget/index.json', { headers: BROWSER })
    expect([answer.status, answer.json().code]).toEqual([404, 'ORIGIN_NOT_ALLOWED'])
  })
})

describe('/ca.pem', () => {
  test('is the certificate that clients must trust, and nothing else', async () => {
    const answer = await mirror.ask('/ca.pem')
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/x-pem-file'])
    const text = answer.body.toString()
    expect(text).toMatch(/^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n$/)
    const expected = await readFile(join(mirror.dataDir, 'state', 'tls', 'ca.pem'), 'utf8')
    const { fingerprint256 } = new X509Certificate(text)
    expect(fingerprint256).toBe(new X509Certificate(expected).fingerprint256)
    expect((await page()).replaceAll('<wbr>', '')).toContain(fingerprint256)
  })

  test('there is none without an authority of our own', async () => {
    await using plain = await startMirror({ origin, config: { listen: { port: 0, tls: 'off' } } })
    const answer = await plain.ask('/ca.pem')
    expect([answer.status, answer.json().code]).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect((await plain.ask('/')).body.toString()).toContain('This address is plain http.')
  })
})

describe('/docs/', () => {
  const manual = new URL('../../docs/', import.meta.url)

  test('every page that is linked is the one of the repository, under its own heading', async () => {
    const links = [...(await page()).matchAll(/href="[^"]*\/(docs\/[^"]+)">([^<]+)</g)]
    expect(links.length).toBeGreaterThan(5)
    for (const [, path = '', title = ''] of links) {
      const answer = await mirror.ask(`/${path}`)
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
      expect(answer.body.toString()).toBe(await readFile(new URL(path.slice('docs/'.length), manual), 'utf8'))
      expect(answer.body.toString()).toMatch(new RegExp(`^# ${title}\n`))
    }
  })

  test.each(['README.md', 'nothing.md', 'adr', '..%2fpackage.json', 'limits.md/', 'constructor'])(
    '%s is not',
    async (name) => {
      expect((await mirror.ask(`/docs/${name}`)).status).toBeOneOf([400, 404])
    },
  )
})

const missing = terraformAvailable() === undefined || !existsSync(SYSTEM_ROOTS)
if (missing) console.warn(`SKIPPED: terraform or ${SYSTEM_ROOTS} is not there; the script for CI is not run`)
describe.skipIf(missing)('with the real terraform', () => {
  test('the script for CI installs, with the certificate from /ca.pem', async () => {
    const [block] = codeBlocksIn(await page()).filter(({ caption }) => caption === 'Shell, before Terraform runs')
    const lines = block?.code.trimEnd().split('\n') ?? []
    expect(lines.pop()).toBe('terraform init')
    const providers = { widget: { source: 'registry.example.test/acme/widget' } }
    const runner = ['bash', '-euc', `${lines.join('\n')}\n"$@"`, 'job']
    await using workspace = await createWorkspace({ providers, cliConfig: '', runner })
    await writeFile(join(workspace.dir, 'ca.pem'), (await mirror.ask('/ca.pem')).body)
    const run = await workspace.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await workspace.installed()).toEqual([expect.stringContaining('acme/widget/1.0.0/')])
  })
})
