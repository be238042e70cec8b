import type { Page } from 'playwright-core'

/** A visible text that is hard to read. */
export interface LowContrast {
  readonly text: string
  readonly ratio: number
}

/** Every visible text of a page whose contrast is below `least` (WCAG 2, 1.4.3), and how many texts there are. */
export async function findLowContrast(
  page: Page,
  least: number,
): Promise<{ readonly texts: number; readonly low: readonly LowContrast[] }> {
  const measured = await page.evaluate<LowContrast[]>(MEASURE)
  return { texts: measured.length, low: measured.filter(({ ratio }) => ratio < least) }
}

/** For the browser. Text of a picture lies on the first rectangle of its group, or on the page. */
const MEASURE = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number)
  const luminance = (color) => {
    const [r, g, b] = channels(color).slice(0, 3).map((value) => {
      const share = value / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const isSolid = (color) => color !== 'none' && (channels(color)[3] ?? 1) === 1
  const groundOf = (element) => {
    if (element instanceof SVGTextElement) {
      const rect = element.parentElement.querySelector(':scope > rect')
      return rect === null ? groundOf(element.ownerSVGElement) : getComputedStyle(rect).fill
    }
    for (let each = element; each !== null; each = each.parentElement) {
      const { backgroundColor } = getComputedStyle(each)
      if (isSolid(backgroundColor)) return backgroundColor
    }
    throw new Error('no background')
  }
  const found = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    const text = node.textContent.trim()
    if (text === '' || element.closest('script, title') || !element.checkVisibility()) continue
    const style = getComputedStyle(element)
    const color = element instanceof SVGTextElement ? style.fill : style.color
    const [light, dark] = [luminance(color), luminance(groundOf(element))].sort((a, b) => b - a)
    found.push({ text, ratio: (light + 0.05) / (dark + 0.05) })
  }
  return found
})()`
