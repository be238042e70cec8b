import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatClientConfiguration, formatShellSetup } from '../../src/protocol/client-configuration.ts'
import { startOrigin } from './origin.ts'
import type { RecordedRequest } from './origin-request.ts'
import { publishSampleModules } from './sample-modules.ts'

/*
 * The test origin as a program: `npm run origin [PORT]`. It publishes a few providers and modules, prints how to
 * reach them and every request that it answers, and ends on Ctrl-C.
 */

const USAGE = `Usage: npm run origin [PORT]

Serves a registry with a few signed providers and modules on 127.0.0.1, on that port or any free one; says how to use it, and
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

await using opened = new AsyncDisposableStack()
const origin = opened.use(await startOrigin({ port: Number(port), onRequest: printRequest }))
for (const release of RELEASES) await origin.publish(release)
const modules = await publishSampleModules(origin, opened)
const [host = ''] = origin.hosts

const folder = await mkdtemp(join(tmpdir(), 'test-origin-ca-'))
const caFile = join(folder, 'ca.pem')
await writeFile(caFile, `${origin.caPem.trimEnd()}\n`)
const cliConfig = formatClientConfiguration({
  client: 'terraform',
  door: 'both',
  direct: false,
  baseUrl: 'https://localhost:8443/',
  origins: [host],
})

console.log(`Test origin registry
  address   ${origin.address}
  hosts     ${origin.hosts.join(', ')}
  CA file   ${caFile}
  key id    ${origin.key.keyId}

Publishes
${RELEASES.map(({ provider, version }) => `  ${provider} ${version}`).join('\n')}
${modules.map(({ module, version, from }) => `  module ${module} ${version}, from ${from}`).join('\n')}

1. Terramirror for it: paste this into a shell in the folder of the clone.

cat > test-origin.yaml <<'END'
origins:
  ${host}: { address: "${origin.address}", caFile: "${caFile}" }
END
npm start -- --config test-origin.yaml

2. Install through it, providers by the network mirror and modules by the host block: paste this into another shell in
   that folder.

export SSL_CERT_FILE="$PWD/data/state/tls/ca-bundle.pem"
mkdir -p "${folder}/try" && cd "${folder}/try"
${formatShellSetup(cliConfig).join('\n')}
cat > main.tf <<'END'
${configuration()}END
terraform init

Straight to it instead: SSL_CERT_FILE=${caFile}, and in the file that TF_CLI_CONFIG_FILE names
  host "${host}" {
    services = {
      "providers.v1" = "${origin.services()['providers.v1']}"
      "modules.v1"   = "${origin.services()['modules.v1']}"
    }
  }
(Modules from git come through the mirror only: it knows where ${host} is.)

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

/** Terraform code that needs something of each kind. */
function configuration(): string {
  const provider = `terraform {
  required_providers {
    widget = { source = "${host}/acme/widget" }
  }
}
`
  const calls = modules.map(
    ({ module, version }) => `module "${module.split('/')[1]}" {
  source  = "${host}/${module}"
  version = "${version}"
}
`,
  )
  return [provider, ...calls].join('\n')
}
