import { html } from 'hono/html'
import type { Markup } from './code-block.ts'

/** One origin registry, and what its providers must show. */
export interface ServedOrigin {
  /** As clients write it, or a pattern. */
  readonly host: string
  readonly signatures: 'required' | 'whenListed'
}

const RULES: Readonly<Record<ServedOrigin['signatures'], string>> = {
  required: 'publisher’s signature and checksums required',
  whenListed: 'signature checked where the registry lists keys, checksums always',
}

/** Which registries can be reached through this mirror. */
export function servedSection(origins: readonly ServedOrigin[]): Markup {
  return html`<section aria-labelledby="served">
<h2 id="served">Served registries</h2>
<div class="content">
<p>Source addresses that belong to one of these hosts are served; all others are “not found” here.</p>
<ul class="origins">${origins.map(
    ({ host, signatures }) => html`<li><code>${host}</code> <span>${RULES[signatures]}</span></li>`,
  )}</ul>
</div>
</section>`
}
