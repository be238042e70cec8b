import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { CURRENT_PLATFORM, createWorkspace, terraformAvailable } from '../e2e/terraform-cli.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { makeTempFolder } from '../store/temp-folder.ts'

const REGISTRY = 'registry.terraform.io'
const EXAMPLE = 'https://mirror.example.com:8443/'
const INSTALLED = `${REGISTRY}/hashicorp/null/3.2.4/${CURRENT_PLATFORM}`
const page = readFileSync(new URL('../../docs/client-configuration.md', import.meta.url), 'utf8')

/** Blocks of one language, each with the heading above it and what it needs that this version may not have. */
function blocksOf(language: string) {
  const pattern = new RegExp(`(?:^<!-- needs: ([^\\n]*) -->\\n)?^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')
  return [...page.matchAll(pattern)].map(([, needs, text = ''], index, { [index]: match }) => {
    const heading = page
      .slice(0, match?.index)
      .match(/^## .*$/gm)
      ?.at(-1)
      ?.slice(3)
    return { name: `${index + 1}, ${heading}`, needs, text }
  })
}

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin({ hosts: [REGISTRY] })
  await origin.publish({ provider: 'hashicorp/null', version: '3.2.4' })
  mirror = await startMirror({ origin })
})
afterAll(async () => {
  await mirror?.[Symbol.asyncDispose]()
  await origin?.[Symbol.asyncDispose]()
})

/** A block as a reader would have it, with the address of the mirror here. */
async function adapt(text: string, folder: string): Promise<string> {
  const cache = join(folder, 'plugin-cache')
  await mkdir(cache, { recursive: true })
  const { host } = new URL(mirror.url)
  return text
    .replaceAll(EXAMPLE, mirror.url)
    .replaceAll(new URL(EXAMPLE).host, host)
    .replaceAll('/path/to/plugin-cache', cache)
}

async function isServed(door: string): Promise<boolean> {
  const path = door === 'provider registry door' ? `/v1/providers/${REGISTRY}/hashicorp/null/versions` : '/'
  const served = (await mirror.ask(path)).status === 200
  if (!served) console.warn(`SKIPPED: the ${door} is not part of this version`)
  return served
}

describe.skipIf(terraformAvailable() === undefined)('the client configurations of docs/client-configuration.md', () => {
  test.for(blocksOf('hcl'))('terraform installs with block $name', async ({ needs, text }, { skip }) => {
    if (needs !== undefined && !(await isServed(needs))) skip()
    await using folder = await makeTempFolder()
    const cliConfig = await adapt(text, folder.path)
    const providers = { null: { source: 'hashicorp/null' } }
    // Past the mirror there is nothing: what does not come from it fails.
    const env = { HTTPS_PROXY: 'http://127.0.0.1:9' }
    await using workspace = await createWorkspace({ providers, cliConfig, caPem: mirror.caPem, env })
    const run = await workspace.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).not.toContain('problems with the CLI configuration')
    expect(await workspace.installed()).toEqual([INSTALLED])
  })

  test('the command that records more platforms does', async () => {
    const [command = ''] = blocksOf('sh').map(({ text }) => text.trim())
    const [, ...args] = command.replaceAll(EXAMPLE, mirror.url).split(' ')
    const providers = { null: { source: 'hashicorp/null' } }
    await using workspace = await createWorkspace({ providers, cliConfig: '', caPem: mirror.caPem })
    const run = await workspace.run(args)
    expect(run.code, run.output).toBe(0)
    expect((await workspace.lockFile()).match(/"h1:/g)).toHaveLength(2)
  })

  test('a token of the client is in no log', () => {
    expect(mirror.logText).not.toContain('the-token')
  })
})

describe('the CI snippets', () => {
  test.each(blocksOf('yaml'))('are YAML that sets both variables: $name', ({ text }) => {
    expect(() => parse(text)).not.toThrow()
    for (const name of ['TF_CLI_CONFIG_FILE:', 'SSL_CERT_FILE:', 'terraform init']) expect(text).toContain(name)
  })
})
