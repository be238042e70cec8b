import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { chromiumAvailable, launchBrowser, openPage } from './browser.ts'
import { findLowContrast } from './contrast.ts'
import { codeBlocksIn } from './page-text.ts'

/** Longer than a busy machine takes. */
const POLL = { timeout: 15_000 }
const PHONE = { width: 360, height: 740 }
const DESKTOP = { width: 1280, height: 800 }
const SETTINGS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [PHONE, DESKTOP].map((viewport) => ({ colorScheme, viewport })),
)

describe.skipIf(chromiumAvailable() === undefined)('the page in a real browser', () => {
  let origin: TestOrigin
  let mirror: TestMirror
  let browser: Browser

  beforeAll(async () => {
    origin = await startOrigin()
    mirror = await startMirror({ origin })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await mirror?.[Symbol.asyncDispose]()
    await origin?.[Symbol.asyncDispose]()
  })

  test.each(SETTINGS)('loads cleanly, is readable and fits: $colorScheme, $viewport.width pixels', async (setting) => {
    await using opened = await openPage(browser, mirror.url, setting)
    const { page, problems } = opened
    const shown: string[] = []
    for (const radio of await page.getByRole('radio').all()) {
      await radio.check()
      const { texts, low } = await findLowContrast(page, 4.5)
      expect(low).toEqual([])
      expect(texts).toBeGreaterThan(60)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(setting.viewport.width)
      shown.push(await page.evaluate<string>('document.querySelector("main").innerText'))
    }
    // The answers do change what is seen, and there are as many as buttons.
    expect(new Set(shown).size).toBeGreaterThanOrEqual(shown.length - 2)
    expect(await page.locator('.flow svg:visible').count()).toBe(1)
    expect(problems).toEqual([])
  })

  test('every copy button copies its block to the letter, and says so', async () => {
    const permissions = ['clipboard-read', 'clipboard-write']
    await using opened = await openPage(browser, mirror.url, { viewport: DESKTOP, permissions })
    const { page, problems } = opened
    await page.evaluate(LISTEN)
    const expected = codeBlocksIn(await page.content()).map(({ code }) => code)
    const copied = new Set<string>()
    for (const radio of await page.getByRole('radio').all()) {
      await radio.check()
      for (const figure of await page.locator('figure.code:visible').all()) {
        const code = (await figure.locator('code').textContent()) ?? ''
        if (copied.has(code)) continue
        await figure.getByRole('button').click()
        await expect.poll(() => page.evaluate('navigator.clipboard.readText()'), POLL).toBe(code)
        copied.add(code)
      }
    }
    await expect
      .poll(() => page.evaluate('said'), POLL)
      .toEqual(expect.arrayContaining(['Copied to the clipboard.', 'Copied']))
    // What takes two answers at once is reached with the first of the other question only.
    expect(expected).toEqual(expect.arrayContaining([...copied]))
    expect(copied.size).toBeGreaterThan(12)
    expect(problems).toEqual([])
  })

  test('where the clipboard is closed, it copies by a selection', async () => {
    await using opened = await openPage(browser, mirror.url, { viewport: DESKTOP })
    const { page } = opened
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("closed"))')
    await page.evaluate(LISTEN)
    const figure = page.locator('figure.code:visible').first()
    await figure.getByRole('button').click()
    await expect.poll(() => page.evaluate('said'), POLL).toContain('Copied to the clipboard.')
    const selected = String(await page.evaluate('getSelection().toString()'))
    expect(selected.trimEnd()).toBe((await figure.locator('code').textContent())?.trimEnd())
  })

  test('works without JavaScript: no button that does nothing, and the answers still choose', async () => {
    await using opened = await openPage(browser, mirror.url, { viewport: DESKTOP, javaScriptEnabled: false })
    const { page } = opened
    expect(await page.getByRole('button').count()).toBe(0)
    const code = page.locator('figure.code:visible').first()
    expect(await code.textContent()).toContain('~/.terraformrc')
    await page.getByRole('radio', { name: 'OpenTofu' }).check()
    expect(await code.textContent()).toContain('~/.tofurc')
    await page.getByRole('radio', { name: 'Modules too' }).check()
    expect(await code.textContent()).toContain('modules.v1')
    await page.getByRole('radio', { name: 'macOS' }).check()
    expect(await page.locator('figure.code:visible', { hasText: 'add-trusted-cert' }).count()).toBe(1)
  })

  test('the keyboard reaches every control, in the order of the page, and one sees where it is', async () => {
    await using opened = await openPage(browser, mirror.url, { viewport: DESKTOP })
    const { page } = opened
    const controls = await page.evaluate<string[]>(CONTROLS)
    const reached: string[] = []
    for (let presses = 0; presses < controls.length; presses += 1) {
      await page.keyboard.press('Tab')
      const { control, outlined } = await page.evaluate<{ control: string; outlined: boolean }>(FOCUSED)
      expect(outlined, control).toBe(true)
      reached.push(control)
    }
    expect(reached).toEqual(controls)
    expect(controls.length).toBeGreaterThan(20)
    await choosesByArrowKeys(page)
  })

  async function choosesByArrowKeys(page: Page): Promise<void> {
    await page.getByRole('radio', { name: 'Terraform', exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    expect(await page.getByRole('radio', { name: 'OpenTofu' }).isChecked()).toBe(true)
  }

  test('a screen reader finds its way', async () => {
    await using opened = await openPage(browser, mirror.url, { viewport: PHONE })
    const { page } = opened
    for (const name of ['Set up your client', 'Trust its certificate', 'In CI', 'Served registries']) {
      expect(await page.getByRole('region', { name }).getByRole('heading', { name }).count(), name).toBe(1)
    }
    for (const name of ['Your client', 'What comes from here', 'Your system']) {
      expect(await page.getByRole('group', { name }).getByRole('radio').count(), name).toBeGreaterThan(1)
    }
    for (const role of ['banner', 'main', 'contentinfo', 'navigation'] as const) {
      expect(await page.getByRole(role).count(), role).toBe(1)
    }
    expect(await page.getByRole('img', { name: /verifies/ }).count()).toBe(1)
    const names = await page
      .getByRole('button')
      .evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')))
    expect(new Set(names).size).toBe(names.length)
  })

  test('keeps still for those who want it', async () => {
    await using opened = await openPage(browser, mirror.url, { reducedMotion: 'reduce' })
    const moving = `[...document.querySelectorAll('*')].filter((each) => /[1-9]/.test(getComputedStyle(each).transitionDuration)).length`
    expect(await opened.page.evaluate(moving)).toBe(0)
    expect(await opened.page.evaluate(`getComputedStyle(document.documentElement).scrollBehavior`)).toBe('auto')
  })

  test('at a wrong path it says what is right, and its configurations still work', async () => {
    await using opened = await openPage(browser, `${mirror.baseUrl}secret-token/x`, { viewport: PHONE })
    const { page, problems } = opened
    expect(await page.getByRole('alert').textContent()).toContain(mirror.baseUrl)
    expect(await page.content()).not.toContain('secret-token')
    expect(await page.locator('figure.code:visible code').first().textContent()).toContain(`"${mirror.baseUrl}"`)
    // The browser itself tells of the 404.
    expect(problems).toEqual([expect.stringContaining('404')])
  })
})

/** For the browser: keeps in `said` what the page says, which it takes back after a while. */
const LISTEN = `globalThis.said = []
new MutationObserver((changes) => said.push(...changes.map(({ target }) => target.textContent)))
  .observe(document.body, { childList: true, subtree: true })`

/** For the browser: what can be operated, in the order of the page; of radio buttons the chosen one of each group. */
const NAME = `(each) => each.tagName + ' ' + (each.getAttribute('aria-label') ?? each.id) + ' ' + (each.getAttribute('href') ?? '')`
const CONTROLS = `[...document.querySelectorAll('a, button, input:checked, [tabindex="0"]')]
  .filter((each) => each.checkVisibility()).map(${NAME})`
const FOCUSED = `(() => {
  const focused = document.activeElement
  const drawn = focused.tagName === 'INPUT' ? focused.nextElementSibling : focused
  const { outlineStyle, outlineWidth } = getComputedStyle(drawn)
  return { control: (${NAME})(focused), outlined: outlineStyle !== 'none' && outlineWidth !== '0px' }
})()`
