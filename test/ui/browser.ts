import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Nothing but what the test asks for: no network of its own, no display, no rights that containers lack. */
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Path of Debian's `chromium`, or undefined with a loud line if it is not on the PATH. */
export function chromiumAvailable(): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'chromium')
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  console.warn('SKIPPED: chromium is not on the PATH; the page is not tested in a real browser')
  return undefined
}

/** Starts the browser. The caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = chromiumAvailable()
  if (executablePath === undefined) throw new Error('chromium is not installed')
  return chromium.launch({ executablePath, args: ARGUMENTS })
}

/** A page and all that went wrong on it. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** Console messages (those on the policy among them), exceptions and failed requests. */
  readonly problems: readonly string[]
}

/** Opens an address in a context of its own, which is closed with the page. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('console', (message) => problems.push(`${message.type()}: ${message.text()}`))
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`))
  await page.goto(url)
  return { page, context, problems, [Symbol.asyncDispose]: () => context.close() }
}
