import { type Context, Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { baseUrlOf } from './base-url.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import type { Manual } from './manual.ts'

/** What was wrong with the path that a browser asked for, and the base URL that is right. */
export interface WrongDoor {
  /** A base URL itself, which is for clients alone; or a path at which nothing is. */
  readonly kind: 'base-url' | 'nothing-here'
  readonly baseUrl: string
}

/** What the page is about. */
export interface PageRequest {
  /** As clients reach this mirror; ends with `/`. */
  readonly baseUrl: URL
  readonly wrongDoor?: WrongDoor
}

/** The page for people. Whoever composes the app brings it: this folder knows nothing of how it looks. */
export type RenderPage = (request: PageRequest) => { readonly html: string; readonly contentSecurityPolicy: string }

/** What the routes for people are made of. */
export interface PageParts {
  readonly renderPage: RenderPage
  readonly manual: Manual
  /** The certificate that clients must trust (PEM), if the mirror made it itself. */
  readonly authorityPem: () => string | undefined
  readonly publicUrl: string | undefined
}

/** `/` (the page for people), `/ca.pem` (the certificate to trust) and `/docs/NAME.md` (the documentation as text). */
export function createPageRoutes(parts: PageParts): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/', (context) => {
    exchangeOf(context.env.incoming).route = '/'
    return sendPage(context, parts)
  })
  routes.get('/ca.pem', (context) => {
    exchangeOf(context.env.incoming).route = '/ca.pem'
    const pem = parts.authorityPem()
    if (pem === undefined) return context.notFound()
    return sendText(context, pem, {
      'Content-Type': 'application/x-pem-file',
      'Content-Disposition': 'attachment; filename="ca.pem"',
    })
  })
  routes.get('/docs/:name', async (context) => {
    exchangeOf(context.env.incoming).route = '/docs/:name'
    const text = await parts.manual.read(context.req.param('name'))
    return text === undefined
      ? context.notFound()
      : sendText(context, text, { 'Content-Type': 'text/plain; charset=utf-8' })
  })
  return routes
}

/** True if who asks reads HTML rather than JSON: a browser. */
export function isBrowser(context: Context<HttpEnv>): boolean {
  const supports = ['application/json', 'text/html']
  return accepts(context, { header: 'Accept', supports, default: 'application/json' }) === 'text/html'
}

/** The page; with what was wrong with the path it is a 404. HEAD gets the same headers. */
export function sendPage(
  context: Context<HttpEnv>,
  { renderPage, publicUrl }: Pick<PageParts, 'renderPage' | 'publicUrl'>,
  wrongDoor?: WrongDoor,
): Response {
  const request = { baseUrl: baseUrlOf(context, publicUrl), ...(wrongDoor === undefined ? {} : { wrongDoor }) }
  const { html, contentSecurityPolicy } = renderPage(request)
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': contentSecurityPolicy,
    'X-Frame-Options': 'DENY',
    ...(wrongDoor === undefined ? {} : { Vary: 'Accept', 'Terramirror-Cache': 'negative' }),
  }
  return sendText(context, html, headers, wrongDoor === undefined ? 200 : 404)
}

function sendText(
  context: Context<HttpEnv>,
  body: string,
  headers: Record<string, string>,
  status: 200 | 404 = 200,
): Response {
  return context.body(body, status, {
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    ...headers,
  })
}
