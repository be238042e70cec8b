import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { listKeys, renderConfigurationPage } from './configuration-page.ts'

const keys = listKeys()
const settings = keys.filter(({ kind }) => kind !== 'section').map((key) => ({ ...key, name: key.path.join('.') }))
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terramirror-reference-'))
  await writeFile(join(folder, 'git-token'), 'git-secret\n')
  await writeFile(join(folder, 'admin-token'), 'admin-secret\n')
})
afterAll(() => rm(folder, { recursive: true }))

test('docs/configuration.md is what `npm run docs` writes', () => {
  expect(readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')).toBe(renderConfigurationPage())
})

test.each(keys.filter(({ path }) => path.at(-1) !== '*').map(({ path, ...key }) => ({ name: path.join('.'), ...key })))(
  '$name has a description in the schema (.describe or .meta)',
  ({ description }) => {
    expect(description).toMatch(/^[A-Z`].*\.$/)
  },
)

describe('every example of the page', () => {
  test.each(settings.filter((key) => key.default === undefined))('$name has one', ({ example }) => {
    expect(example).toBeDefined()
  })

  test.each(settings.filter(({ example }) => example !== undefined))('$name loads', async ({ path, example }) => {
    const whole = path.reduceRight<unknown>((value, key) => ({ [key === '*' ? 'a.example' : key]: value }), example)
    await writeFile(join(folder, 'config.yaml'), stringify(completed(whole)))
    const env = { ACME_TOKEN: 'a', FILES_PASSWORD: 'b' }
    await expect(loadConfig({ set: [], cwd: folder, env })).resolves.toBeDefined()
  })
})

/** A certificate has two files, and so has a git host by ssh: where an example names one, the other comes along. */
function completed(config: unknown): unknown {
  const { listen: { tls } = {}, hosts } = config as {
    listen?: { tls?: Record<string, unknown> }
    hosts?: Record<string, Record<string, unknown>>
  }
  const [[host, settings] = []] = Object.entries(hosts ?? {})
  if (host !== undefined && settings !== undefined && ('sshKeyFile' in settings || 'knownHostsFile' in settings)) {
    return { hosts: { [host]: { sshKeyFile: './id_ed25519', knownHostsFile: './known_hosts', ...settings } } }
  }
  if (tls === undefined || 'auto' in tls) return config
  return { listen: { tls: { certFile: './tls.crt', keyFile: './tls.key', ...tls } } }
}
