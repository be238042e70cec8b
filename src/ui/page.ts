import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import { choiceStyle } from './choice.ts'
import { CLIENT_CHOICE, clientSection, FORM_CHOICE, jobSection } from './client-section.ts'
import type { Markup } from './code-block.ts'
import { flowPicture } from './flow-picture.ts'
import { SCRIPT } from './script.ts'
import { type ServedOrigin, servedSection } from './served-section.ts'
import { type CacheUsage, type Mode, stateLine } from './state-line.ts'
import { STYLE } from './style.ts'
import { SYSTEM_CHOICE, trustSection } from './trust-section.ts'

/** What the page tells of the mirror, whoever asks. */
export interface PageSubject {
  readonly version: string
  readonly mode: Mode
  readonly origins: readonly ServedOrigin[]
  readonly usage: () => CacheUsage
  /** The certificate that clients must trust (PEM), if the mirror made it itself. */
  readonly authorityPem: () => string | undefined
  /** Pages of the documentation, below `docs/`. */
  readonly manual: readonly { readonly name: string; readonly title: string }[]
}

/** What one request adds. */
export interface PageRequest {
  /** As clients reach this mirror; ends with `/`. */
  readonly baseUrl: URL
  /** Somebody came by a path that is not for people, or not there; the base URL is the one that is right for clients. */
  readonly wrongDoor?: { readonly kind: 'base-url' | 'nothing-here'; readonly baseUrl: string }
}

/** HTML, and the policy under which it works: nothing from elsewhere, no script and no style but its own. */
export interface Page {
  readonly html: string
  readonly contentSecurityPolicy: string
}

const ALL_STYLE = STYLE + choiceStyle([CLIENT_CHOICE, FORM_CHOICE, SYSTEM_CHOICE])
const CONTENT_SECURITY_POLICY = [
  `default-src 'none'`,
  `style-src ${sourceHash(ALL_STYLE)}`,
  `script-src ${sourceHash(SCRIPT)}`,
  // The icon is in the page.
  'img-src data:',
  `base-uri 'none'`,
  `form-action 'none'`,
  `frame-ancestors 'none'`,
].join('; ')

const SHIELD = 'M16 2l12 4v9c0 8-5 12-12 15C9 27 4 23 4 15V6z'
const TICK = 'M10 16l4 5 8-10'
const ICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="#0b6b4f" d="${SHIELD}"/><path fill="none" stroke="#fff" stroke-width="3" d="${TICK}"/></svg>`,
)}`

/** Makes the page for people. Everything that comes from outside is escaped. */
export function createPage(subject: PageSubject): (request: PageRequest) => Page {
  return (request) => ({ html: String(renderPage(subject, request)), contentSecurityPolicy: CONTENT_SECURITY_POLICY })
}

function renderPage(subject: PageSubject, { baseUrl, wrongDoor }: PageRequest): Markup {
  const authorityPem = subject.authorityPem()
  const hosts = subject.origins.map(({ host }) => host)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${wrongDoor === undefined ? '' : 'Not found · '}Terramirror at ${baseUrl.host}</title>
<link rel="icon" href="${raw(ICON)}">
<style>${raw(ALL_STYLE)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="brand"><svg viewBox="0 0 32 32" aria-hidden="true"><path d="${SHIELD}"/><path d="${TICK}"/></svg>Terramirror</p>
${stateLine(subject.mode, subject.usage())}
</header>
<main id="main">
${wrongDoor === undefined ? '' : wrongDoorNotice(wrongDoor)}
${baseUrl.protocol === 'https:' ? '' : plainHttpNotice()}
${introduction(subject.mode, baseUrl)}
${clientSection(baseUrl, hosts)}
${authorityPem === undefined ? foreignAuthority(baseUrl) : trustSection(baseUrl, authorityPem)}
${jobSection(baseUrl, { ownAuthority: authorityPem !== undefined })}
${servedSection(subject.origins)}
</main>
${footer(subject, baseUrl)}
<p id="copied" class="unseen" role="status"></p>
<script>${raw(SCRIPT)}</script>
</body>
</html>
`
}

function introduction(mode: Mode, baseUrl: URL): Markup {
  const place = html`It stands at <code>${baseUrl.host}</code>, between your client and the registries that you install from.`
  return html`<div class="intro">
<h1>A verifying mirror for Terraform and OpenTofu</h1>
${
  mode === 'sealed'
    ? html`<p class="lead">${place} It is sealed: what it holds was verified when it came, and is handed out without asking any registry.</p>`
    : html`<p class="lead">${place} What is asked for it fetches once, verifies, keeps, and hands out again, also while a registry is slow or down.</p>
${flowPicture()}`
}
</div>`
}

function wrongDoorNotice({ kind, baseUrl }: NonNullable<PageRequest['wrongDoor']>): Markup {
  const what = kind === 'base-url' ? 'This path is for clients, not for browsers.' : 'Nothing is served at this path.'
  // The base URLs of the registry door name an origin (`REGISTRY` stands for it).
  const whose = baseUrl.includes('/REGISTRY/') ? ', where REGISTRY is the host of the source addresses' : ''
  return html`<div class="notice" role="alert"><p><strong>${what}</strong> Terraform and OpenTofu are given the base URL <code>${baseUrl}</code>, with the slash at its end${whose}; the configurations below have it.</p></div>`
}

function plainHttpNotice(): Markup {
  return html`<div class="notice"><p><strong>This address is plain http.</strong> Terraform and OpenTofu refuse a network mirror without TLS: put a TLS front before it and set <code>publicUrl</code> to the address of the front.</p></div>`
}

function foreignAuthority(baseUrl: URL): Markup {
  if (baseUrl.protocol !== 'https:') return html``
  return html`<section aria-labelledby="trust">
<h2 id="trust">Trust its certificate</h2>
<div class="content">
<p>The certificate of this address was not made by the mirror itself. If your machines do not trust it already, ask who runs this mirror for the certificate authority behind it.</p>
</div>
</section>`
}

function footer({ version, manual }: PageSubject, baseUrl: URL): Markup {
  const link = (path: string, label: string): Markup =>
    html`<li><a href="${new URL(path, baseUrl).href}">${label}</a></li>`
  return html`<footer>
<nav aria-label="Documentation and state">
${manual.length === 0 ? '' : html`<div><h2>Documentation</h2><ul>${manual.map(({ name, title }) => link(`docs/${name}`, title))}</ul></div>`}
<div><h2>State</h2><ul>${link('healthz', 'Health')}${link('readyz', 'Readiness')}${link('metrics', 'Metrics')}</ul></div>
</nav>
<p>Terramirror ${version}. Free software under the Apache License 2.0.</p>
</footer>`
}

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
