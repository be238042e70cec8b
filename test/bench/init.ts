import { readFileSync } from 'node:fs'
import { createWorkspace, networkMirrorConfig, type Workspace } from '../e2e/terraform-cli.ts'
import { BIG, publishBig } from './big-provider.ts'
import { download, run } from './load.ts'
import { HOST } from './origin-files.ts'
import { Rounds } from './rounds.ts'
import { atMost, quantity, type Section, told } from './row.ts'
import type { Stage } from './stage.ts'

const ROUNDS = 5

const METHOD = `The real \`terraform init\` without a lock file, of a provider of 700 MB in a zip of the size of hashicorp/aws, from the mirror
that holds it with its \`h1:\`, and from nginx with the same documents and archive as files. No process is tied to a core.`

/** What a user waits for. */
export async function measureInit(stage: Stage): Promise<Section> {
  const zip = await publishBig(stage)
  await using peer = await stage.startPeer()
  await using mirror = await stage.startMirror({ tls: true })
  const nginxUrl = `https://localhost:${peer.ports.filesTls}/providers/`
  await warmUp(stage, mirror.at(BIG.provider), zip)
  await using fromMirror = await workspaceAt(`${mirror.url}providers/`, stage)
  await using fromNginx = await workspaceAt(nginxUrl, stage)
  await Promise.all([init(fromMirror), init(fromNginx)])
  const seconds = await Rounds.run(Math.min(stage.rounds, ROUNDS), {
    mirror: () => init(fromMirror),
    nginx: () => init(fromNginx),
  })
  return {
    title: 'terraform init',
    method: METHOD,
    rows: [
      atMost('beside nginx static', 1.03, seconds.ratio('mirror', 'nginx')),
      told('from the mirror', quantity(seconds.spread('mirror'), 's')),
      told('from nginx', quantity(seconds.spread('nginx'), 's')),
    ],
  }
}

/** The mirror holds the archive and all its hashes; the peer has what the mirror says, and the archive. */
async function warmUp(stage: Stage, base: string, zip: string): Promise<void> {
  const { version, provider } = BIG
  await download(`${base}/${version}.json`, stage)
  await download(`${base}/${version}/linux_amd64/archive.zip`, stage)
  for (let tries = 0; tries < 600; tries++) {
    const document = await text(`${base}/${version}.json`, stage)
    if (document.includes('"h1:')) {
      const { url } = (JSON.parse(document) as { archives: { linux_amd64: { url: string } } }).archives.linux_amd64
      const path = `/providers/${HOST}/${provider}`
      await stage.copyToPeer(`${path}/index.json`, Buffer.from(await text(`${base}/index.json`, stage)))
      await stage.copyToPeer(`${path}/${version}.json`, Buffer.from(document))
      await stage.copyToPeer(`${path}/${url}`, zip)
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the mirror has not computed the h1 within a minute')
}

function text(url: string, { caFile }: Stage): Promise<string> {
  return run('curl', ['-sS', '--fail', '--cacert', caFile, url])
}

async function workspaceAt(url: string, { caFile }: Stage): Promise<Workspace> {
  const source = `${HOST}/${BIG.provider}`
  return createWorkspace({
    providers: { big: { source, version: BIG.version } },
    cliConfig: networkMirrorConfig(url),
    caPem: readFileSync(caFile, 'utf8'),
  })
}

async function init(workspace: Workspace): Promise<number> {
  await workspace.reset()
  const startedAt = performance.now()
  const { code, output } = await workspace.run(['init'])
  if (code !== 0) throw new Error(`terraform init failed: ${output}`)
  return (performance.now() - startedAt) / 1_000
}
