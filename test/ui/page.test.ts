import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { formatClientConfiguration } from '../../src/protocol/client-configuration.ts'
import { createPage, type PageRequest, type PageSubject } from '../../src/ui/page.ts'
import { formatSize } from '../../src/ui/state-line.ts'
import { AUTHORITY_PEM } from './authority-pem.ts'
import { codeBlocksIn } from './page-text.ts'

const baseUrl = new URL('https://mirror.example.com:8443/')
const origins = [
  { host: 'registry.terraform.io', signatures: 'required' },
  { host: 'registry.opentofu.org', signatures: 'whenListed' },
] as const

function render(subject: Partial<PageSubject> = {}, request: Partial<PageRequest> = {}) {
  const page = createPage({
    version: '1.2.3',
    mode: 'online',
    origins,
    usage: () => ({ packages: 12, bytes: 3_400_000_000 }),
    authorityPem: () => AUTHORITY_PEM,
    manual: [{ name: 'limits.md', title: 'Limits' }],
    ...subject,
  })
  return page({ baseUrl, ...request })
}

describe('what the page says', () => {
  it('has every client configuration, letter for letter, for this very base URL', () => {
    const blocks = codeBlocksIn(render().html)
    for (const client of ['terraform', 'tofu'] as const) {
      for (const [form, door, direct] of [
        ['mirror', 'mirror', false],
        ['direct', 'mirror', true],
        ['both', 'both', false],
      ] as const) {
        const found = blocks.filter(({ part }) => part === `data-client="${client}" data-form="${form}"`)
        const hosts = origins.map(({ host }) => host)
        expect(found.map(({ code }) => code)).toEqual([
          formatClientConfiguration({ client, door, direct, baseUrl: baseUrl.href, origins: hosts }),
        ])
      }
    }
  })

  it.each([
    [{ packages: 12, bytes: 3_400_000_000 }, '12 packages held', '3.4 GB'],
    [{ packages: 1, bytes: 0 }, '1 package held', '0 bytes'],
    [{ packages: 1_234_567, bytes: 999_960 }, '1,234,567 packages held', '1.0 MB'],
    [{ packages: undefined, bytes: undefined }, 'counting packages…', 'measuring…'],
  ])('tells what is held: %j', (usage, packages, size) => {
    const { html } = render({ usage: () => usage })
    expect(html).toContain(`<span>${packages}</span> <span>${size}</span>`)
  })

  it('tells whether it fetches', () => {
    expect(render().html).toContain('>Online<')
    expect(render().html).toContain('if not held')
    const sealed = render({ mode: 'sealed' }).html
    expect(sealed).toContain('>Sealed: only what is held is served<')
    expect(sealed).not.toMatch(/if not held|it fetches/)
  })

  it('without an authority of its own it offers none', () => {
    const { html } = render({ authorityPem: () => undefined })
    for (const word of ['/ca.pem', 'Download', 'SSL_CERT_FILE', 'certutil']) expect(html).not.toContain(word)
    expect(html).toContain('was not made by the mirror itself')
  })

  it('over plain http it says that clients will refuse', () => {
    const plain = render({ authorityPem: () => undefined }, { baseUrl: new URL('http://localhost:8080/') })
    expect(plain.html).toContain('This address is plain http.')
    expect(render().html).not.toContain('plain http')
  })

  it('says at a wrong path which base URL is right', () => {
    const address = 'https://mirror.example.com:8443/providers/'
    const wrong = render({}, { wrongDoor: { kind: 'nothing-here', baseUrl: address } }).html
    expect(wrong).toMatch(/role="alert".*Nothing is served at this path\..*<code>https:\S*\/providers\/<\/code>/)
    const base = render({}, { wrongDoor: { kind: 'base-url', baseUrl: address } }).html
    expect(base).toContain('This path is for clients, not for browsers.')
    expect(render().html).not.toContain('role="alert"')
  })

  it('links stay below the base URL, and lead nowhere else', () => {
    const behind = new URL('https://front.example/terraform/')
    const { html } = render({}, { baseUrl: behind })
    const links = [...html.matchAll(/(?:href|src)="([^"#][^"]*)"/g)].map(([, link = '']) => link)
    const own = links.filter((link) => link.startsWith(behind.href)).map((link) => link.slice(behind.href.length))
    expect(own.sort()).toEqual(['ca.pem', 'docs/limits.md', 'healthz', 'metrics', 'readyz'])
    expect(links.filter((link) => !link.startsWith(behind.href) && !link.startsWith('data:'))).toEqual([])
  })
})

describe('how the page is made', () => {
  it('nothing from outside becomes markup', () => {
    const evil = `"><script>alert('1')</script>&amp;`
    const { html } = render({
      version: evil,
      origins: [{ host: evil, signatures: 'required' }],
      manual: [{ name: 'limits.md', title: evil }],
    })
    expect(html.match(/<script/g)).toHaveLength(1)
    expect(html).not.toContain('alert(&#39;1&#39;)</script>')
    expect(html).toContain('&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;')
  })

  it('its policy allows its own style and script by their hashes, and nothing else', () => {
    const { html, contentSecurityPolicy } = render()
    const hashes = ['style', 'script'].map((name) => {
      const found = [...html.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))]
      expect(found).toHaveLength(1)
      return `${name}-src 'sha256-${createHash('sha256')
        .update(found[0]?.[1] ?? '')
        .digest('base64')}'`
    })
    expect(contentSecurityPolicy.split('; ')).toEqual([
      "default-src 'none'",
      ...hashes,
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
    expect(html).not.toMatch(/ (?:style|on[a-z]+)=/)
  })

  it('is under 50 KB, and with thirty origins too', () => {
    const many = Array.from({ length: 30 }, (_, index) => ({
      host: `registry-${index}.corp.example`,
      signatures: 'required' as const,
    }))
    expect(Buffer.byteLength(render().html)).toBeLessThan(35_000)
    expect(Buffer.byteLength(render({ origins: many }).html)).toBeLessThan(50_000)
  })

  it('has headings in order, landmarks, labels, unique ids and targets for all references', () => {
    const { html } = render({}, { wrongDoor: { kind: 'base-url', baseUrl: 'https://m.example/providers/' } })
    const levels = [...html.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
    expect(levels[0]).toBe(1)
    expect(levels.filter((level) => level === 1)).toHaveLength(1)
    levels.forEach((level, index) => {
      expect(level - (levels[index - 1] ?? 0)).toBeLessThanOrEqual(1)
    })
    for (const landmark of ['header', 'main', 'nav', 'footer']) {
      expect(html.match(new RegExp(`<${landmark}[ >]`, 'g'))).toHaveLength(1)
    }
    expect(html).toContain('<html lang="en">')
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const references = [...html.matchAll(/(?:aria-labelledby="|href="#)([^"]+)"/g)].map(([, id = '']) => id)
    expect(references.length).toBeGreaterThan(5)
    expect(ids).toEqual(expect.arrayContaining(references))
  })
})

describe('formatSize', () => {
  it.each([
    [0, '0 bytes'],
    [999, '999 bytes'],
    [1_000, '1.0 kB'],
    [9_949, '9.9 kB'],
    [9_960, '10 kB'],
    [999_499, '999 kB'],
    [999_500, '1.0 MB'],
    [12_345_678_901_234, '12 TB'],
    [5e15, '5000 TB'],
  ])('%d is %s', (bytes, text) => {
    expect(formatSize(bytes)).toBe(text)
  })
})
