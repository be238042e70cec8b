import { html } from 'hono/html'
import type { Markup } from './code-block.ts'

/** What the mirror holds; undefined while it is counted. */
export interface CacheUsage {
  readonly packages: number | undefined
  readonly bytes: number | undefined
}

const MODES = {
  online: 'Online',
  sealed: 'Sealed: only what is held is served',
} as const

/** Whether the mirror fetches. */
export type Mode = keyof typeof MODES

/** How it stands, in one line. */
export function stateLine(mode: Mode, { packages, bytes }: CacheUsage): Markup {
  const counted =
    packages === undefined
      ? 'counting packages…'
      : `${packages.toLocaleString('en')} ${packages === 1 ? 'package' : 'packages'} held`
  const size = bytes === undefined ? 'measuring…' : formatSize(bytes)
  return html`<p class="state"><span class="mode">${MODES[mode]}</span> <span>${counted}</span> <span>${size}</span></p>`
}

/** Decimal units, as the configuration has them. */
export function formatSize(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  let size = bytes
  let unit = 0
  // What would be shown as 1000 is 1 of the next unit.
  while (Math.round(size) >= 1_000 && unit < units.length - 1) {
    size /= 1_000
    unit += 1
  }
  const digits = unit > 0 && size < 9.95 ? 1 : 0
  return `${size.toFixed(digits)} ${units[unit]}`
}
