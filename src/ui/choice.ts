import { html } from 'hono/html'
import type { Markup } from './code-block.ts'

/** A question with a few answers; parts of the page belong to one answer. Works without JavaScript. */
export interface Choice {
  /** Of the radio buttons, and of the attribute `data-NAME` of the parts. */
  readonly name: string
  readonly legend: string
  /** The first one is chosen at first. */
  readonly options: readonly { readonly value: string; readonly label: string }[]
}

/** The radio buttons. */
export function choiceButtons({ name, legend, options }: Choice): Markup {
  return html`<fieldset class="choice">
<legend>${legend}</legend>
<div class="options">${options.map(
    ({ value, label }, index) =>
      html`<label><input type="radio" name="${name}" value="${value}" id="${name}-${value}"${index === 0 ? html` checked` : ''}><span>${label}</span></label>`,
  )}</div>
</fieldset>`
}

/** Style that hides the parts of the answers that are not chosen. Browsers that cannot do it show all parts. */
export function choiceStyle(choices: readonly Choice[]): string {
  const rules = choices.flatMap(({ name, options }) =>
    options.map(
      ({ value }) => `body:has(#${name}-${value}:checked) [data-${name}]:not([data-${name}="${value}"]){display:none}`,
    ),
  )
  return `@supports selector(:has(*)){${rules.join('')}}`
}
