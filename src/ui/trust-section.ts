import { X509Certificate } from 'node:crypto'
import { html } from 'hono/html'
import { type Choice, choiceButtons } from './choice.ts'
import { type CodeBlock, codeBlock, type Markup } from './code-block.ts'

interface System {
  readonly value: string
  readonly label: string
  readonly blocks: readonly CodeBlock[]
  readonly note: string
}

const SYSTEMS: readonly System[] = [
  {
    value: 'linux',
    label: 'Linux',
    blocks: [
      {
        caption: 'Debian, Ubuntu, Alpine (whole machine)',
        code: 'sudo cp ca.pem /usr/local/share/ca-certificates/terramirror.crt\nsudo update-ca-certificates\n',
      },
      {
        caption: 'Fedora, RHEL (whole machine)',
        code: 'sudo cp ca.pem /etc/pki/ca-trust/source/anchors/terramirror.pem\nsudo update-ca-trust\n',
      },
      {
        caption: 'One shell only (Debian, Ubuntu, Alpine)',
        code: 'cat /etc/ssl/certs/ca-certificates.crt ca.pem > ca-bundle.pem\nexport SSL_CERT_FILE="$PWD/ca-bundle.pem"\n',
      },
    ],
    note: 'SSL_CERT_FILE replaces the roots of the system, so name a file that has both. On Fedora and RHEL these are in /etc/pki/tls/certs/ca-bundle.crt.',
  },
  {
    value: 'macos',
    label: 'macOS',
    blocks: [
      {
        caption: 'macOS, in a terminal',
        code: 'sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ca.pem\n',
      },
    ],
    note: 'The client reads the keychain; SSL_CERT_FILE is ignored on macOS.',
  },
  {
    value: 'windows',
    label: 'Windows',
    blocks: [{ caption: 'Windows, in a terminal of an administrator', code: 'certutil -addstore Root ca.pem\n' }],
    note: 'The client reads the certificate store of the system; SSL_CERT_FILE is ignored on Windows.',
  },
  {
    value: 'containers',
    label: 'Containers',
    blocks: [
      {
        caption: 'Dockerfile (Debian, Ubuntu, Alpine with ca-certificates)',
        code: 'COPY ca.pem /usr/local/share/ca-certificates/terramirror.crt\nRUN update-ca-certificates\n',
      },
      {
        caption: 'An image that cannot be rebuilt: mount one file',
        code: 'docker run -v "$PWD/ca-bundle.pem:/etc/terramirror-ca.pem:ro" -e SSL_CERT_FILE=/etc/terramirror-ca.pem "$IMAGE"\n',
      },
    ],
    note: 'ca-bundle.pem is made as under “Linux”, or taken from the folder state/tls of the mirror.',
  },
]

/** For which system. */
export const SYSTEM_CHOICE: Choice = { name: 'system', legend: 'Your system', options: SYSTEMS }

/** How to trust the mirror's own certificate authority, on every system. */
export function trustSection(baseUrl: URL, authorityPem: string): Markup {
  const address = new URL('ca.pem', baseUrl).href
  const download: CodeBlock = {
    caption: 'Download it, and see its fingerprint',
    code: `curl --insecure --output ca.pem ${address}\nopenssl x509 -in ca.pem -noout -fingerprint -sha256\n`,
  }
  const systems = SYSTEMS.map(
    ({ value, blocks, note }) =>
      html`<div data-system="${value}">${blocks.map(codeBlock)}<p class="note">${note}</p></div>`,
  )
  return html`<section aria-labelledby="trust">
<h2 id="trust">Trust its certificate</h2>
<div class="content">
<p>This mirror made its own certificate authority. It can vouch for the mirror’s own names and for nothing else.</p>
<p><a class="download" href="${address}" download="ca.pem">Download <code>ca.pem</code></a></p>
<p>Before you trust it, compare its SHA-256 fingerprint with one that you got another way, such as from who runs this mirror:</p>
<p class="fingerprint"><code>${fingerprintOf(authorityPem)}</code></p>
${codeBlock(download)}
<div class="choices">${choiceButtons(SYSTEM_CHOICE)}</div>
${systems}
</div>
</section>`
}

/** With places to break the line. */
function fingerprintOf(pem: string): Markup {
  const pairs = new X509Certificate(pem).fingerprint256.split(':')
  return html`${pairs.map((pair, index) => html`${index === 0 ? '' : html`:<wbr>`}${pair}`)}`
}
