import { html } from 'hono/html'

/** Something to copy. */
export interface CodeBlock {
  /** What it is, in a few words: the caption, and what the button says to a screen reader. */
  readonly caption: string
  readonly code: string
}

/** Markup that is escaped already. */
export type Markup = ReturnType<typeof html>

/** A block of code under its caption. The button stays hidden without JavaScript; see `script.ts`. */
export function codeBlock({ caption, code }: CodeBlock): Markup {
  return html`<figure class="code">
<figcaption><span>${caption}</span><button type="button" hidden aria-label="Copy: ${caption}">Copy</button></figcaption>
<pre><code>${code.split(/(?<=\n)/).map(line)}</code></pre>
</figure>`
}

/** Comments step back. */
function line(text: string): Markup | string {
  return /^\s*#/.test(text) ? html`<i>${text}</i>` : text
}
