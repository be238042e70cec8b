import { stripVTControlCharacters, styleText } from 'node:util'

/** Where the demo writes, and how much that place can show. */
export interface ScreenOptions {
  readonly write: (text: string) => void
  readonly colours: boolean
  /** Without it, lines and signs are drawn in ASCII. */
  readonly unicode: boolean
  /** Without it, pictures are left out. */
  readonly pictures: boolean
}

/** Columns of a fact beside its name. */
const FACT_WIDTH = 88

const ASCII: Readonly<Record<string, string>> = {
  '─': '-',
  '│': '|',
  '▶': '>',
  '◀': '<',
  '▼': 'v',
  '▲': '^',
  '✔': 'ok:',
  '✘': 'FAILED:',
  '·': '-',
  '…': '...',
}

/** What a terminal shows: whole lines, told in a few kinds. It keeps them all, with their colours. */
export class Screen {
  /** Every line so far, with ANSI colours and box characters. */
  readonly lines: string[] = []
  readonly #options: ScreenOptions

  constructor(options: ScreenOptions) {
    this.#options = options
  }

  /** A line of plain words. */
  say(text = ''): void {
    this.#line(text)
  }

  /** Begins a part of the story. */
  heading(text: string): void {
    this.#line('')
    this.#line(styleText(['bold', 'cyan'], `─── ${text} ${'─'.repeat(Math.max(3, 95 - text.length))}`, FORCE))
  }

  /** A command as a user would type it. */
  command(text: string): void {
    this.#line(`  ${styleText('dim', '$', FORCE)} ${styleText('bold', text, FORCE)}`)
  }

  /** What a program said. */
  output(lines: readonly string[]): void {
    for (const line of lines) this.#line(`    ${styleText('dim', line, FORCE)}`)
  }

  /** Facts under one name: a line each, or more where it is long. */
  facts(name: string, facts: readonly string[]): void {
    const lines = facts.flatMap((fact) => wrap(fact, FACT_WIDTH))
    lines.forEach((line, index) => {
      this.#line(`  ${styleText('yellow', (index === 0 ? name : '').padEnd(9), FORCE)} ${line}`)
    })
  }

  /** Whether something that the mirror promises held. */
  verdict(held: boolean, text: string): void {
    this.#line(`  ${held ? styleText('green', `✔ ${text}`, FORCE) : styleText('red', `✘ ${text}`, FORCE)}`)
  }

  /** A drawing with box characters. */
  picture(lines: readonly string[]): void {
    if (!this.#options.pictures) return
    this.#line('')
    for (const line of lines) this.#line(`  ${styleText('cyan', line, FORCE)}`)
    this.#line('')
  }

  #line(styled: string): void {
    this.lines.push(styled)
    const { colours, unicode, write } = this.#options
    const text = colours ? styled : stripVTControlCharacters(styled)
    write(`${unicode ? text : toAscii(text)}\n`)
  }
}

/** Breaks between words, and keeps the indentation; breaks words that are longer than a line. */
function wrap(text: string, width: number): string[] {
  const indent = /^ */.exec(text)?.[0] ?? ''
  const lines: string[] = []
  const pieces = new RegExp(`.{1,${width - indent.length}}`, 'g')
  for (const word of text
    .trimStart()
    .split(' ')
    .flatMap((word) => word.match(pieces) ?? [])) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(indent + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Styles always; a screen without colours strips them. */
const FORCE = { validateStream: false } as const

function toAscii(text: string): string {
  return text.replaceAll(/[^\p{ASCII}]/gu, (character) => ASCII[character] ?? (/[┌-╿]/.test(character) ? '+' : '?'))
}

/** Whether the locale of an environment can show more than ASCII. */
export function speaksUnicode(env: NodeJS.ProcessEnv): boolean {
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find((value) => value !== undefined && value !== '')
  return /utf-?8/i.test(locale ?? '')
}

/** Whether colours are wanted: on a terminal that has them, unless NO_COLOR is set. */
export function wantsColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  return isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}
