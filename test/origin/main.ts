import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startOrigin } from './origin.ts'
import type { RecordedRequest } from './origin-request.ts'

/*
 * The test origin as a program: `node test/origin/main.ts [PORT]`. It publishes a few providers, prints how to reach
 * them and every request that it answers, and ends on Ctrl-C.
 */

const RELEASES = [
  { provider: 'acme/widget', version: '1.0.0' },
  { provider: 'acme/widget', version: '1.1.0' },
  { provider: 'acme/widget', version: '2.0.0-beta.1' },
  { provider: 'acme/gadget', version: '0.3.0', archiveBytes: 20_000_000 },
  { provider: 'other.example.test/acme/widget', version: '1.0.0' },
]

await using origin = await startOrigin({ port: Number(process.argv[2] ?? 0), onRequest: printRequest })
for (const release of RELEASES) await origin.publish(release)

const folder = await mkdtemp(join(tmpdir(), 'test-origin-ca-'))
const caFile = join(folder, 'ca.pem')
await writeFile(caFile, origin.caPem)

console.log(`Test origin registry
  address   ${origin.address}
  hosts     ${origin.hosts.join(', ')}
  CA file   ${caFile}
  key id    ${origin.key.keyId}

Publishes
${RELEASES.map(({ provider, version }) => `  ${provider} ${version}`).join('\n')}

Straight to it from Terraform (SSL_CERT_FILE=${caFile}), in the CLI configuration:
  host "${origin.hosts[0]}" {
    services = { "providers.v1" = "${origin.services()['providers.v1']}" }
  }

Through Terramirror, in its configuration:
  origins:
    ${origin.hosts[0]}: { address: "${origin.address}", caFile: ${caFile} }

Ctrl-C ends it.`)

await new Promise<void>((resolve) => {
  process.once('SIGINT', resolve)
  process.once('SIGTERM', resolve)
})
await rm(folder, { recursive: true, force: true })

function printRequest({ method, host, url, status, outcome }: RecordedRequest): void {
  const result = outcome === 'answered' ? status : outcome
  console.log(`${new Date().toISOString().slice(11, 23)} ${host} ${method} ${url} ${result}`)
}
