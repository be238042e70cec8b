/** What the picture of one installation shows. All of it was counted. */
export interface Flow {
  readonly client: string
  /** Requests of the client to the mirror, and bytes that it got. */
  readonly asked: number
  readonly gotBytes: number
  /** Requests of the mirror to the origin, and archives among them; undefined if the origin is gone. */
  readonly fetched: { readonly requests: number; readonly archives: number } | undefined
  readonly archives: number
  readonly cachedBytes: number
}

/** Draws an installation: who asked whom, how often, and what is kept. */
export function drawFlow(flow: Flow): string[] {
  const client = box([flow.client])
  const mirror = box(['Terramirror'])
  const origin = box([flow.fetched === undefined ? 'origin: gone' : 'origin registry'])
  const left = arrows(`${flow.asked} requests`, formatSize(flow.gotBytes))
  const right =
    flow.fetched === undefined
      ? noArrows('no way there')
      : arrows(`${flow.fetched.requests} requests`, `${flow.fetched.archives} archives`)
  const rows = client.map((line, row) => `${line}${left[row]}${mirror[row]}${right[row]}${origin[row]}`)
  const indent = ' '.repeat((client[0]?.length ?? 0) + (left[0]?.length ?? 0))
  const cache = `${flow.archives} archives, ${formatSize(flow.cachedBytes)} on disk`
  return [...rows, `${indent}      │`, `${indent}      └── ${cache}`].map((line) => line.trimEnd())
}

/** `5.0 MB`, in powers of 1000. */
export function formatSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** Four rows high. */
function box([text = '']: readonly string[]): string[] {
  const line = '─'.repeat(text.length + 2)
  return [`┌${line}┐`, `│ ${text} │`, `│${' '.repeat(text.length + 2)}│`, `└${line}┘`]
}

function arrows(there: string, back: string): string[] {
  const width = Math.max(there.length, back.length) + 5
  return [
    ` ${centre(there, width)} `,
    ` ${'─'.repeat(width - 1)}▶ `,
    ` ◀${'─'.repeat(width - 1)} `,
    ` ${centre(back, width)} `,
  ]
}

function noArrows(text: string): string[] {
  const width = text.length + 5
  const empty = ' '.repeat(width + 2)
  return [empty, ` ${centre(text, width)} `, empty, empty]
}

function centre(text: string, width: number): string {
  return text.padStart(Math.floor((width + text.length) / 2)).padEnd(width)
}
