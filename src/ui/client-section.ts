import { html } from 'hono/html'
import {
  CLIENTS as CLIENT_FACTS,
  type Client,
  type ClientConfigurationOptions,
  formatClientConfiguration,
} from '../protocol/client-configuration.ts'
import { type Choice, choiceButtons } from './choice.ts'
import { codeBlock, type Markup } from './code-block.ts'

type Form = Pick<ClientConfigurationOptions, 'door' | 'direct'> & {
  readonly value: string
  readonly label: string
  readonly about: string
}

const CLIENTS = (['terraform', 'tofu'] as const).map((value) => {
  const { name: label, file } = CLIENT_FACTS[value]
  return { value, label, file }
})

const FORMS: readonly Form[] = [
  {
    value: 'mirror',
    label: 'Everything from here',
    door: 'mirror',
    direct: false,
    about: 'Every provider comes from this mirror and nothing else is asked. Right for most.',
  },
  {
    value: 'direct',
    label: 'Others directly',
    door: 'mirror',
    direct: true,
    about:
      'Registries that this mirror does not serve are asked directly. It is no way around an outage: only a true “not found” leads on.',
  },
  {
    value: 'both',
    label: 'Modules too',
    door: 'both',
    direct: false,
    about:
      'Modules come through this mirror as well, and so does “providers lock”, which records hashes for every platform that you name.',
  },
]

/** Which client, and which of its configurations. */
export const CLIENT_CHOICE: Choice = { name: 'client', legend: 'Your client', options: CLIENTS }
export const FORM_CHOICE: Choice = { name: 'form', legend: 'What comes from here', options: FORMS }

/** Configurations to copy, for every client in every form. */
export function clientSection(baseUrl: URL, origins: readonly string[]): Markup {
  const blocks = CLIENTS.flatMap(({ value: client, label, file }) =>
    FORMS.map(({ value, door, direct }) => {
      const code = formatClientConfiguration({ client, door, direct, baseUrl: baseUrl.href, origins })
      const caption = `${label} · ${file}`
      return html`<div data-client="${client}" data-form="${value}">${codeBlock({ caption, code })}</div>`
    }),
  )
  return html`<section aria-labelledby="configure">
<h2 id="configure">Set up your client</h2>
<div class="content">
<p>Put this into the client’s own configuration, not into your <code>.tf</code> files. Source addresses stay as they are.</p>
<div class="choices">${choiceButtons(CLIENT_CHOICE)}${choiceButtons(FORM_CHOICE)}</div>
${FORMS.map(({ value, about }) => html`<p class="about" data-form="${value}">${about}</p>`)}
${blocks}
<p class="note">The slash at the end of each URL matters: without it clients leave out the last word of the path.</p>
</div>
</section>`
}

/** The same for a job: by environment variables, with files that lie in the repository or the image. */
export function jobSection(baseUrl: URL, { ownAuthority }: { ownAuthority: boolean }): Markup {
  return html`<section aria-labelledby="jobs">
<h2 id="jobs">In CI</h2>
<div class="content">
<p>Two environment variables are all that a job needs. Any CI system can set them; the files they name are no secrets.</p>
${CLIENTS.map(
  ({ value, label }) =>
    html`<div data-client="${value}">${codeBlock({ caption: `Shell, before ${label} runs`, code: jobScript(value, baseUrl, ownAuthority) })}</div>`,
)}
</div>
</section>`
}

function jobScript(client: Client, baseUrl: URL, ownAuthority: boolean): string {
  const whole = formatClientConfiguration({ client, door: 'mirror', direct: false, baseUrl: baseUrl.href, origins: [] })
  // Its remarks are for files that stay.
  const configuration = whole.replaceAll(/^ *#.*\n/gm, '')
  const trust = [
    '# ca.pem is the certificate from “Trust its certificate” above.',
    'cat /etc/ssl/certs/ca-certificates.crt ca.pem > ca-bundle.pem',
    'export SSL_CERT_FILE="$PWD/ca-bundle.pem"',
  ]
  const lines = [
    `cat > terramirror.tfrc <<'END'`,
    configuration.trimEnd(),
    'END',
    'export TF_CLI_CONFIG_FILE="$PWD/terramirror.tfrc"',
    ...(ownAuthority ? trust : []),
    `${client} init`,
  ]
  return `${lines.join('\n')}\n`
}
