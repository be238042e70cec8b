import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { createPage } from '../../src/ui/page.ts'
import { AUTHORITY_PEM } from './authority-pem.ts'
import { launchBrowser } from './browser.ts'

/*
 * `npm run screenshots`: makes the pictures of the page in docs/images anew, of a mirror as it might be, from the top of
 * the page to the end of its first section.
 */

const DESKTOP = { viewport: { width: 1280, height: 800 } }
const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 1.25 }
const PICTURES = [
  { name: 'page-desktop', colorScheme: 'light', ...DESKTOP },
  { name: 'page-desktop-dark', colorScheme: 'dark', ...DESKTOP },
  { name: 'page-phone', colorScheme: 'light', ...PHONE },
] as const

const render = createPage({
  version: '0.1.0',
  mode: 'online',
  origins: [
    { host: 'registry.terraform.io', signatures: 'required' },
    { host: 'registry.opentofu.org', signatures: 'whenListed' },
  ],
  usage: () => ({ packages: 1_284, bytes: 61_700_000_000 }),
  authorityPem: () => AUTHORITY_PEM,
  manual: [],
})

async function takePicture(browser: Browser, { name, ...options }: (typeof PICTURES)[number]): Promise<void> {
  const page = await browser.newPage(options)
  await page.setContent(render({ baseUrl: new URL('https://mirror.example.com/') }).html)
  const { y: height = 0 } = (await page.getByRole('region', { name: 'Trust its certificate' }).boundingBox()) ?? {}
  const path = fileURLToPath(new URL(`../../docs/images/${name}.png`, import.meta.url))
  await page.screenshot({ path, fullPage: true, clip: { x: 0, y: 0, width: options.viewport.width, height } })
  await page.close()
}

const browser = await launchBrowser()
try {
  for (const picture of PICTURES) await takePicture(browser, picture)
} finally {
  await browser.close()
}
