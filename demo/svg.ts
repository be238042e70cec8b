import { stripVTControlCharacters } from 'node:util'

/*
 * Draws what a terminal shows as an SVG. Text is fixed to its columns with `textLength`, whatever fonts the reader has,
 * and box characters are drawn as lines, so that they meet.
 */

const CELL = { width: 8, height: 17 }
const MARGIN = { side: 20, top: 48, bottom: 16 }
const FONT = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
const COLOURS = { ground: '#0d1117', bar: '#161b22', text: '#d6dde6', dim: '#8b949e' }
/** The colours of the SGR codes that the screen uses. */
const SGR_COLOURS: Readonly<Record<string, string>> = {
  '2': COLOURS.dim,
  '31': '#ff7b72',
  '32': '#56d364',
  '33': '#e3b341',
  '36': '#79c0ff',
}
/** From the middle of a cell: left, right, up, down. */
const BOX_ARMS: Readonly<Record<string, string>> = {
  '─': 'lr',
  '│': 'ud',
  '┌': 'rd',
  '┐': 'ld',
  '└': 'ru',
  '┘': 'lu',
}

interface Run {
  readonly text: string
  readonly column: number
  readonly colour: string
  readonly bold: boolean
}

/** A picture of lines with ANSI colours, in a window of a terminal. */
export function drawSvg(lines: readonly string[], title = 'npm run demo'): string {
  const columns = Math.max(...lines.map((line) => stripVTControlCharacters(line).length))
  const width = columns * CELL.width + 2 * MARGIN.side
  const height = lines.length * CELL.height + MARGIN.top + MARGIN.bottom
  const rows = lines.map((line, row) =>
    runsOf(line)
      .map((run) => drawRun(run, row))
      .join(''),
  )
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, index) => `<circle cx="${20 + 18 * index}" cy="16" r="5.5" fill="${fill}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="What ${title} prints">
<rect width="${width}" height="${height}" rx="8" fill="${COLOURS.ground}"/>
<path d="M0 32V8a8 8 0 0 1 8-8H${width - 8}a8 8 0 0 1 8 8V32z" fill="${COLOURS.bar}"/>
${dots.join('')}<text x="${width / 2}" y="20.5" text-anchor="middle" fill="${COLOURS.dim}" font-family='${FONT}' font-size="12.5">${title}</text>
<g font-family='${FONT}' font-size="13" xml:space="preserve">
${rows.filter((row) => row !== '').join('\n')}
</g>
</svg>
`
}

/** Takes a line apart into stretches of one style. */
function runsOf(line: string): Run[] {
  const runs: Run[] = []
  let [column, colour, bold] = [0, COLOURS.text, false]
  // Odd parts are the codes between the texts.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ANSI codes begin with one
  line.split(/\x1b\[(\d+)m/).forEach((part, index) => {
    if (index % 2 === 0) {
      if (part !== '') runs.push({ text: part, column, colour, bold })
      column += part.length
    } else if (part === '1') bold = true
    else if (part === '22') [bold, colour] = [false, COLOURS.text]
    else colour = SGR_COLOURS[part] ?? COLOURS.text
  })
  return runs
}

function drawRun({ text, column, colour, bold }: Run, row: number): string {
  const shapes: string[] = []
  const weight = bold ? ' font-weight="bold"' : ''
  for (const match of text.matchAll(/[─│┌┐└┘]+|[▶◀]|[^─│┌┐└┘▶◀ ]+(?: [^─│┌┐└┘▶◀ ]+)*/g)) {
    const [word] = match
    const at = column + match.index
    if (BOX_ARMS[word.charAt(0)] !== undefined) shapes.push(drawBoxes(word, at, row, colour))
    else if (word === '▶' || word === '◀') shapes.push(drawArrow(word, at, row, colour))
    else {
      const length = word.length * CELL.width
      shapes.push(
        `<text x="${left(at)}" y="${top(row) + 13}" textLength="${length}" lengthAdjust="spacingAndGlyphs" fill="${colour}"${weight}>${escapeXml(word)}</text>`,
      )
    }
  }
  return shapes.join('')
}

function drawBoxes(characters: string, column: number, row: number, colour: string): string {
  const path = [...characters].map((character, index) => {
    const [x, y] = [left(column + index) + CELL.width / 2, top(row) + CELL.height / 2]
    const ends: Record<string, string> = {
      l: `H${x - CELL.width / 2}`,
      r: `H${x + CELL.width / 2}`,
      u: `V${y - CELL.height / 2}`,
      d: `V${y + CELL.height / 2}`,
    }
    return [...(BOX_ARMS[character] ?? '')].map((arm) => `M${x} ${y}${ends[arm]}`).join('')
  })
  return `<path d="${/^─+$/.test(characters) ? `M${left(column)} ${top(row) + CELL.height / 2}h${characters.length * CELL.width}` : path.join('')}" stroke="${colour}" fill="none"/>`
}

function drawArrow(character: '▶' | '◀', column: number, row: number, colour: string): string {
  const [tip, back] = character === '▶' ? [left(column + 1), left(column)] : [left(column), left(column + 1)]
  const y = top(row) + CELL.height / 2
  return `<path d="M${tip} ${y}L${back} ${y - 4}V${y + 4}z" fill="${colour}"/>`
}

function left(column: number): number {
  return MARGIN.side + column * CELL.width
}

function top(row: number): number {
  return MARGIN.top + row * CELL.height
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
