import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startOrigin } from './origin.ts'
import type { RecordedRequest } from './origin-request.ts'

/*
 * The test origin as a program: `npm run origin [PORT]`. It publishes a few providers, prints how to reach them and
 * every request that it answers, and ends on Ctrl-C.
 */

const USAGE = `Usage: npm run origin [PORT]

Serves a registry with a few signed providers on 127.0.0.1, on that port or any free one; says how to use it, and
prints every request. Ctrl-C ends it.
`

const RELEASES = [
  { provider: 'acme/widget', version: '1.0.0' },
  { provider: 'acme/widget', version: '1.1.0' },
  { provider: 'acme/widget', version: '2.0.0-beta.1' },
  { provider: 'acme/gadget', version: '0.3.0', archiveBytes: 20_000_000 },
  { provider: 'other.example.test/acme/widget', version: '1.0.0' },
]

const [port = '0', ...more] = process.argv.slice(2)
if (more.length > 0 || !/^\d{1,5}$/.test(port)) {
  const asked = port === '--help' || port === '-h'
  const stream = asked ? process.stdout : process.stderr
  stream.write(USAGE)
  process.exit(asked ? 0 : 2)
}

await using origin = await startOrigin({ port: Number(port), onRequest: printRequest })
for (const release of RELEASES) await origin.publish(release)

const folder = await mkdtemp(join(tmpdir(), 'test-origin-ca-'))
const caFile = join(folder, 'ca.pem')
await writeFile(caFile, `${origin.caPem.trimEnd()}\n`)

console.log(`Test origin registry
  address   ${origin.address}
  hosts     ${origin.hosts.join(', ')}
  CA file   ${caFile}
  key id    ${origin.key.keyId}

Publishes
${RELEASES.map(({ provider, version }) => `  ${provider} ${version}`).join('\n')}

Through Terramirror: paste this into a shell in its folder, and what that prints into another one.

cat > test-origin.yaml <<'END'
origins:
  ${origin.hosts[0]}: { address: "${origin.address}", caFile: "${caFile}" }
END
npm start -- --config test-origin.yaml

Straight to it from Terraform: this in the file that TF_CLI_CONFIG_FILE names, and SSL_CERT_FILE=${caFile}
  host "${origin.hosts[0]}" {
    services = { "providers.v1" = "${origin.services()['providers.v1']}" }
  }

A configuration to install:
  terraform {
    required_providers {
      widget = { source = "${origin.hosts[0]}/acme/widget" }
    }
  }

Ctrl-C ends it. Requests:`)

await new Promise<void>((resolve) => {
  process.once('SIGINT', resolve)
  process.once('SIGTERM', resolve)
})
await rm(folder, { recursive: true, force: true })

function printRequest({ method, host, url, status, outcome }: RecordedRequest): void {
  const result = outcome === 'answered' ? status : outcome
  console.log(`${new Date().toISOString().slice(11, 23)} ${host} ${method} ${url} ${result}`)
}
