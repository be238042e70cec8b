import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import { createRecordedSite } from './recorded-site.ts'
import { startMirrorOver } from './registry-mirror.ts'

/*
 * Registries made of files on a static host, each served as it is: what of it comes through the mirror, and what does
 * not, and why.
 */

/** Every file of `vectors/static-registries`, where its site serves it, and what it comes to. */
const SITES = [
  {
    site: 'azizsoule',
    host: 'azizsoule.github.io',
    // What the discovery document leads to is a tree of the mirror protocol: there is no list of versions in it.
    below: '/terraform-provider-hostinger/',
    provider: 'azizsoule/hostinger',
    asks: 'https://azizsoule.github.io/terraform-provider-hostinger/providers/azizsoule/hostinger/versions',
    files: {
      'dot-well-known/terraform.json': 'read',
      'providers/azizsoule.github.io/azizsoule/hostinger/index.json': 'never asked for',
      'providers/azizsoule.github.io/azizsoule/hostinger/0.1.28.json': 'never asked for',
      'providers/azizsoule.github.io/azizsoule/hostinger/0.1.29.json': 'never asked for',
    },
  },
  {
    site: 'experiment-4',
    host: 'experiment-4.github.io',
    below: '/',
    provider: 'acme/widget',
    asks: 'https://experiment-4.github.io/v1/providers/acme/widget/versions',
    files: { 'dot-well-known/terraform.json': 'read' },
  },
  {
    site: 'testuser2697',
    host: 'testuser2697.github.io',
    below: '/',
    provider: 'acme/widget',
    asks: 'https://testuser2697.github.io/v1/providers/acme/widget/versions',
    // A static host that does not serve dot files is why the second is there; no client asks for it.
    files: { 'dot-well-known/terraform.json': 'read', 'well-known/terraform.json': 'never asked for' },
  },
] as const

const root = new URL('../../../shared/vectors/static-registries/', import.meta.url)

describeVectors('real registries made of static files', () => {
  test('the table names every file, and no other', () => {
    const files = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(fileURLToPath(root), join(entry.parentPath, entry.name)))
    const named = SITES.flatMap(({ site, files }) => Object.keys(files).map((file) => `${site}/${file}`))
    expect(named.sort()).toEqual(files.sort())
  })

  test.each(SITES)('$site: it has no list of versions, so its provider is not there', async (each) => {
    const { site, host, below, provider, asks, files } = each
    const urlOf = (file: string): string =>
      file.startsWith('dot-well-known/')
        ? `https://${host}/.well-known/${file.slice('dot-well-known/'.length)}`
        : `https://${host}${below}${file}`
    const answers = Object.keys(files).map((file) => [
      urlOf(file),
      readFileSync(new URL(`${site}/${file}`, root), 'utf8'),
    ])
    await using mirror = await startMirrorOver(createRecordedSite(Object.fromEntries(answers)), { hosts: [host] })

    const index = await mirror.ask(`${host}/${provider}/index.json`)
    expect([index.status, index.json.code, index.json.upstream_url]).toEqual([404, 'PROVIDER_NOT_FOUND', asks])
    const version = await mirror.ask(`${host}/${provider}/0.1.29.json`)
    expect([version.status, version.json]).toEqual([200, { archives: {} }])
    for (const [file, outcome] of Object.entries(files)) {
      expect(mirror.asked.get(urlOf(file)), file).toBe(outcome === 'read' ? 1 : undefined)
    }
    // What was asked for: the discovery document, and the list that is not there.
    expect([...mirror.asked.keys()]).toEqual([`https://${host}/.well-known/terraform.json`, asks])
  })

  test('a mirror document in the place of a list of versions is refused as what it is', async () => {
    const index = readFileSync(new URL('azizsoule/providers/azizsoule.github.io/azizsoule/hostinger/index.json', root))
    const site = createRecordedSite({
      'https://azizsoule.github.io/.well-known/terraform.json': '{"providers.v1":"/v1/"}',
      'https://azizsoule.github.io/v1/azizsoule/hostinger/versions': { body: index },
    })
    await using mirror = await startMirrorOver(site, { hosts: ['azizsoule.github.io'] })
    const { status, json } = await mirror.ask('azizsoule.github.io/azizsoule/hostinger/index.json')
    expect([status, json.code]).toEqual([502, 'UPSTREAM_INVALID'])
    expect(json.error).toContain('no array "versions"')
  })
})

/*
 * Two sites that the notes of the vectors describe but whose files are not among them: made here as they are described.
 */

const DIGEST = 'ab'.repeat(32)

function downloadDocument(base: string, platform: string, more: Record<string, unknown>): string {
  const [os, arch] = platform.split('_')
  const filename = `terraform-provider-widget_1.0.0_${platform}.zip`
  const urls = { download_url: `${base}${filename}`, shasums_url: `${base}SHA256SUMS` }
  return JSON.stringify({ protocols: ['5.0'], os, arch, filename, shasum: DIGEST, ...urls, ...more })
}

test('t0tt1, as described: `index.json` in the place of `versions` is not found, whatever else is there', async () => {
  const host = 't0tt1.github.io'
  const base = `https://${host}/terraform-registry/providers/t0tt1/widget/`
  const site = createRecordedSite({
    [`https://${host}/.well-known/terraform.json`]: `{"providers.v1":"https://${host}/terraform-registry/providers"}`,
    [`${base}index.json`]: '{"versions":[{"version":"1.0.0"}]}',
    [`${base}1.0.0/download/linux/amd64`]: downloadDocument(base, 'linux_amd64', {
      shasums_signature_url: '',
      signing_keys: {},
    }),
    [`${base}SHA256SUMS`]: `${DIGEST}  terraform-provider-widget_1.0.0_linux_amd64.zip\n`,
  })
  await using mirror = await startMirrorOver(site, { hosts: [host] })
  const { status, json } = await mirror.ask(`${host}/t0tt1/widget/index.json`)
  expect([status, json.code, json.upstream_url]).toEqual([404, 'PROVIDER_NOT_FOUND', `${base}versions`])
})

test.each([
  { signatures: 'required', status: 502, code: 'SIGNATURE_REQUIRED', hashes: undefined },
  { signatures: 'whenListed', status: 200, code: undefined, hashes: [`zh:${DIGEST}`] },
])('t0tt1, with its list mended: no key and an empty signature URL, signatures $signatures', async (expected) => {
  const host = 't0tt1.github.io'
  const base = `https://${host}/providers/t0tt1/widget/`
  const site = createRecordedSite({
    [`https://${host}/.well-known/terraform.json`]: '{"providers.v1":"/providers"}',
    [`${base}versions`]: '{"versions":[{"version":"1.0.0","platforms":[{"os":"linux","arch":"amd64"}]}]}',
    [`${base}1.0.0/download/linux/amd64`]: downloadDocument(base, 'linux_amd64', {
      shasums_signature_url: '',
      signing_keys: {},
    }),
    [`${base}SHA256SUMS`]: `${DIGEST}  terraform-provider-widget_1.0.0_linux_amd64.zip\n`,
  })
  const origins = { [host]: { verification: { signatures: expected.signatures } } }
  await using mirror = await startMirrorOver(site, { hosts: [host], origins })
  const { status, json } = await mirror.ask(`${host}/t0tt1/widget/1.0.0.json`)
  expect([status, json.code, json.archives?.linux_amd64.hashes]).toEqual([
    expected.status,
    expected.code,
    expected.hashes,
  ])
})

test('cloudserviceconsulting, as described: platforms that its list forgets come with those that it names', async () => {
  const host = 'registry.demothinkupc.com'
  const base = `https://${host}/v1/providers/acme/widget/`
  const platforms = ['darwin_arm64', 'linux_amd64', 'linux_arm64', 'windows_amd64']
  const lines = platforms.map((platform) => `${DIGEST}  terraform-provider-widget_1.0.0_${platform}.zip\n`)
  const documents = platforms.map((platform) => [
    `${base}1.0.0/download/${platform.replace('_', '/')}`,
    downloadDocument(base, platform, { signing_keys: { gpg_public_keys: null } }),
  ])
  const site = createRecordedSite({
    [`https://${host}/.well-known/terraform.json`]: '{"providers.v1":"/v1/providers/"}',
    [`${base}versions`]: '{"versions":[{"version":"1.0.0","platforms":[{"os":"linux","arch":"amd64"}]}]}',
    [`${base}SHA256SUMS`]: lines.join(''),
    ...Object.fromEntries(documents),
  })
  const origins = { [host]: { verification: { signatures: 'whenListed' } } }
  await using mirror = await startMirrorOver(site, { hosts: [host], origins })
  const { json } = await mirror.ask(`${host}/acme/widget/1.0.0.json`)
  expect(Object.keys(json.archives)).toEqual(platforms)
})
