import { html } from 'hono/html'
import type { Markup } from './code-block.ts'

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly title: string
  readonly lines: readonly string[]
  readonly role: 'edge' | 'mirror'
}

const TEXT = {
  client: { title: 'Your client', lines: ['terraform init', 'tofu init'] },
  mirror: {
    title: 'Terramirror',
    lines: ['Held already? Served at once.', 'Else: fetched once, for all.'],
    check: ['Verified here:', 'signature and SHA-256'],
  },
  origin: { title: 'Origin registries', lines: ['asked only for', 'what is not held'] },
}

const DESCRIPTION =
  'The client asks Terramirror. Terramirror serves what it holds; what it does not hold it fetches once from the origin registry, verifies the publisher’s signature and the SHA-256 of every archive, keeps it, and then hands it to the client.'

/** How a request takes its way, as a picture: a row for wide windows, a column for narrow ones. */
export function flowPicture(): Markup {
  return html`<figure class="flow">${wide()}${narrow()}</figure>`
}

function wide(): Markup {
  return picture('wide', '0 0 960 210', [
    box({ x: 2, y: 45, width: 190, height: 120, role: 'edge', ...TEXT.client }),
    box({ x: 332, y: 5, width: 296, height: 200, role: 'mirror', ...TEXT.mirror }),
    box({ x: 768, y: 45, width: 190, height: 120, role: 'edge', ...TEXT.origin }),
    arrow('M200 85H324', 'asks', [262, 74]),
    arrow('M324 130H200', 'verified bytes', [262, 152], 'safe'),
    arrow('M636 85H760', 'if not held', [698, 74]),
    arrow('M760 130H636', 'bytes', [698, 152]),
    check(372, 138, 216),
  ])
}

function narrow(): Markup {
  return picture('narrow', '0 0 320 500', [
    box({ x: 60, y: 2, width: 200, height: 100, role: 'edge', ...TEXT.client }),
    box({ x: 12, y: 166, width: 296, height: 180, role: 'mirror', ...TEXT.mirror }),
    box({ x: 60, y: 398, width: 200, height: 100, role: 'edge', ...TEXT.origin }),
    arrow('M130 108V160', 'asks', [96, 139]),
    arrow('M190 160V108', 'verified bytes', [252, 139], 'safe'),
    arrow('M130 352V392', 'if not held', [84, 377]),
    arrow('M190 392V352', 'bytes', [226, 377]),
    check(52, 282, 216),
  ])
}

function picture(name: string, viewBox: string, parts: readonly Markup[]): Markup {
  return html`<svg class="${name}" viewBox="${viewBox}" role="img" aria-labelledby="flow-${name}">
<title id="flow-${name}">${DESCRIPTION}</title>
${parts}</svg>`
}

function box({ x, y, width, height, title, lines, role }: Box): Markup {
  const middle = x + width / 2
  const top = role === 'mirror' ? y + 38 : y + height / 2 - 16
  return html`<g class="${role}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="12"/>
<text class="title" x="${middle}" y="${top}">${title}</text>${lines.map(
    (line, index) => html`<text x="${middle}" y="${top + 26 + index * 21}">${line}</text>`,
  )}</g>`
}

/** A line with its head, whatever its direction: the head is a marker of two strokes drawn at the end. */
function arrow(path: string, label: string, [x, y]: readonly [number, number], kind = 'plain'): Markup {
  return html`<g class="arrow ${kind}"><path d="${path}"/><path d="${headOf(path)}"/><text x="${x}" y="${y}">${label}</text></g>`
}

function headOf(path: string): string {
  const [, x = '0', y = '0', axis = 'H', end = '0'] = /^M(\d+) (\d+)([HV])(\d+)$/.exec(path) ?? []
  const back = Number(end) > Number(axis === 'H' ? x : y) ? -7 : 7
  const tip = axis === 'H' ? [Number(end), Number(y)] : [Number(x), Number(end)]
  const sides =
    axis === 'H'
      ? [
          [back, -5],
          [back, 5],
        ]
      : [
          [-5, back],
          [5, back],
        ]
  const [first = [0, 0], second = [0, 0]] = sides.map(([dx = 0, dy = 0]) => [(tip[0] ?? 0) + dx, (tip[1] ?? 0) + dy])
  return `M${first.join(' ')}L${tip.join(' ')}L${second.join(' ')}`
}

/** The seal: where bytes become trusted. */
function check(x: number, y: number, width: number): Markup {
  const [first, second] = TEXT.mirror.check
  return html`<g class="check"><rect x="${x}" y="${y - 18}" width="${width}" height="56" rx="8"/>
<path class="shield" d="M${x + 22} ${y - 9}l12 4v9c0 9-5 14-12 18-7-4-12-9-12-18v-9z"/><path class="tick" d="M${x + 16.5} ${y + 4}l4 4.500 8-9"/>
<text x="${x + 44}" y="${y + 4}">${first}</text><text x="${x + 44}" y="${y + 23}">${second}</text></g>`
}
