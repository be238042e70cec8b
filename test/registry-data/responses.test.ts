import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { describeVectors, readJsonVector, readVector } from '../protocol/vectors.ts'
import { canonicalVersion } from './client-rules.ts'
import type { Reply } from './data-origin.ts'
import { createRecordedSite, withOwnKey } from './recorded-site.ts'
import { startMirrorOver } from './registry-mirror.ts'

const FOLDER = 'responses/'
const TERRAFORM = 'registry.terraform.io'
const OPENTOFU = 'registry.opentofu.org'
const CUSTOM = 'terraform.example.org'
const DISCOVERY = '{"modules.v1":"/v1/modules/","providers.v1":"/v1/providers/"}'
const ZH_RANDOM_200 = 'zh:5f9c7aa76b7c34d722fc9123208e26b22d60440cb47150dd04733b9b94f4541a'
const ZH_RANDOM_343 = 'zh:59d98081c4475f2ad77d881c4412c5129c56214892f490adf11c7e7a5a47de9b'
const ZH_AWS_4620 = 'zh:61ad9739e7d6fca8fddef269cb2ba7285f0632f5f27660755662550e1f69e4bb'

/*
 * Every recorded answer of `vectors/responses`, and what comes of it. Lists of versions are compared with all that they
 * list. A download document is served twice: as it was recorded, when its SHA256SUMS was not recorded and nothing can be
 * verified; and with a key and a SHA256SUMS of the test.
 */

/** Answers to `NAMESPACE/TYPE/versions`. `count`: versions that a client could choose. */
const LISTS = [
  { file: `${TERRAFORM}/random_versions_2023.json`, host: TERRAFORM, name: 'hashicorp/random', count: 30 },
  { file: `${TERRAFORM}/aws_versions_2023.json.gz`, host: TERRAFORM, name: 'hashicorp/aws', count: 324 },
  { file: `${OPENTOFU}/docs_versions.json`, host: OPENTOFU, name: 'hashicorp/random', count: 2 },
]

/** Download documents of linux_amd64. The one with `packages` has none for this platform, so no h1 comes of it. */
const DOWNLOADS = [
  { file: `${TERRAFORM}/random_2.0.0_linux_amd64_2020.json`, list: LISTS[0], version: '2.0.0', zh: ZH_RANDOM_200 },
  { file: `${TERRAFORM}/random_3.4.3_linux_amd64.json`, list: LISTS[0], version: '3.4.3', zh: ZH_RANDOM_343 },
  { file: `${TERRAFORM}/aws_4.62.0_linux_amd64.json`, list: LISTS[1], version: '4.62.0', zh: ZH_AWS_4620 },
  { file: `${OPENTOFU}/docs_download_with_packages.json`, list: LISTS[2], version: '2.0.0', zh: ZH_RANDOM_200 },
]

/** Answers to other questions, in the place of a list of versions. */
const NO_LISTS = [
  { file: `${TERRAFORM}/hc-releases-terraform-index.json`, status: 502, code: 'UPSTREAM_INVALID' },
  { file: `${TERRAFORM}/module_consul_aws_versions.json`, status: 502, code: 'UPSTREAM_INVALID' },
  // It has a list "versions", of strings: each is left out, and an empty list tells clients to look elsewhere (A16).
  { file: `${TERRAFORM}/module_consul_aws_0.3.8.json.gz`, status: 200, code: undefined },
]

/** Whole conversations. `count` is undefined where no list of the provider was recorded: then it is not there. */
const CASSETTES = [
  { file: 'fetches_provider_versions.yml', host: TERRAFORM, name: 'hashicorp/aws', count: 190 },
  { file: 'fetches_module_versions.yml', host: TERRAFORM, name: 'hashicorp/aws', count: undefined },
  {
    file: 'fetches_the_source_for_a_module_dependency.yml',
    host: TERRAFORM,
    name: 'hashicorp/consul',
    count: undefined,
  },
  {
    file: 'fetches_the_source_for_a_provider_dependency.yml',
    host: TERRAFORM,
    name: 'terraform-providers/opsgenie',
    count: undefined,
  },
  {
    file: 'fetches_the_source_for_a_provider_from_a_custom_registry.yml',
    host: CUSTOM,
    name: 'hashicorp/ciscoasa',
    count: undefined,
  },
  { file: 'handles_sources_that_can_t_be_found.yml', host: TERRAFORM, name: 'dependabot/package', count: undefined },
  {
    file: 'raises_DependencyNotFound_when_the_module_does_not_exist.yml',
    host: TERRAFORM,
    name: 'does/not',
    count: undefined,
  },
]

/** Where each host's document leads to; undefined if it offers no providers. In the order of the file. */
const SERVICES: readonly { readonly host: string; readonly base: string | undefined }[] = [
  { host: TERRAFORM, base: `https://${TERRAFORM}/v1/providers/` },
  { host: OPENTOFU, base: `https://${OPENTOFU}/v1/providers/` },
  { host: 'app.terraform.io', base: 'https://app.terraform.io/api/registry/v1/providers/' },
  // Of 2021, when the same host had modules only; another name, because one mirror has one answer a host.
  { host: 'app-2021.terraform.io', base: undefined },
  { host: 'gitlab.com', base: undefined },
  { host: 'terralist.example', base: 'https://terralist.example/v1/providers/' },
  { host: 'opendepot.example', base: 'https://opendepot.example/opendepot/providers/v1/' },
  { host: 'terrapod.example', base: 'https://terrapod.example/api/terrapod/v1/registry/providers/' },
  // Without a slash at its end in the document.
  { host: 't0tt1.github.io', base: 'https://t0tt1.github.io/terraform-registry/providers/' },
  { host: 'azizsoule.github.io', base: 'https://azizsoule.github.io/terraform-provider-hostinger/providers/' },
  { host: 'crainte.github.io', base: 'https://crainte.github.io/' },
  { host: 'registry.demothinkupc.com', base: 'https://registry.demothinkupc.com/v1/providers/' },
  { host: 'terrakube.example', base: undefined },
  { host: 'proxied.example', base: undefined },
  // No document was found for these: the host has none.
  { host: 'spacelift.io', base: undefined },
]

/** What holds no answer about providers. */
const NOT_ABOUT_PROVIDERS = ['recorded-exchanges.json', 'module-source-forms.json']

describeVectors('every recorded answer of real registries has the outcome that it should', () => {
  test('the tables name every file, and no other', () => {
    const folder = new URL(`../../../shared/vectors/${FOLDER}`, import.meta.url)
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(fileURLToPath(folder), join(entry.parentPath, entry.name)))
    const named = [
      ...[...LISTS, ...DOWNLOADS, ...NO_LISTS].map(({ file }) => file),
      ...CASSETTES.map(({ file }) => `${TERRAFORM}/vcr/${file}`),
      'discovery.json',
      ...NOT_ABOUT_PROVIDERS,
    ]
    expect(named.sort()).toEqual(files.sort())
  })

  test.each(LISTS)('a list of versions: $file', async ({ file, host, name, count }) => {
    const recorded = readVector(FOLDER + file)
    const site = createRecordedSite(registry(host, { [`${name}/versions`]: recorded }))
    await using mirror = await startMirrorOver(site, { hosts: [host] })
    const { status, json } = await mirror.ask(`${host}/${name}/index.json`)
    expect([status, ...Object.keys(json.versions).sort()]).toEqual([200, ...versionsIn(recorded)])
    expect(versionsIn(recorded)).toHaveLength(count)
  })

  test.each(DOWNLOADS)('a download document as recorded, without its SHA256SUMS: $file', async (recorded) => {
    const { host = '', name = '', file: list = '' } = recorded.list ?? {}
    const site = createRecordedSite(
      registry(host, {
        [`${name}/versions`]: readVector(FOLDER + list),
        [`${name}/${recorded.version}/download/linux/amd64`]: readVector(FOLDER + recorded.file),
      }),
    )
    await using mirror = await startMirrorOver(site, { hosts: [host] })
    const { status, json } = await mirror.ask(`${host}/${name}/${recorded.version}.json`)
    expect([status, json.code]).toEqual([502, 'CHECKSUMS_INVALID'])
    expect(json.error).toContain('has no SHA256SUMS for this version: checksums 404')
  })

  test.each(DOWNLOADS)('a download document with the key of the test: $file', async (recorded) => {
    const { host = '', name = '', file: list = '' } = recorded.list ?? {}
    const url = `https://${host}/v1/providers/${name}/${recorded.version}/download/linux/amd64`
    const site = createRecordedSite({
      ...registry(host, { [`${name}/versions`]: readVector(FOLDER + list) }),
      ...(await withOwnKey(url, readVector(FOLDER + recorded.file))),
    })
    await using mirror = await startMirrorOver(site, { hosts: [host] })
    const { status, json } = await mirror.ask(`${host}/${name}/${recorded.version}.json`)
    expect([status, Object.keys(json.archives), json.archives.linux_amd64?.hashes]).toEqual([
      200,
      ['linux_amd64'],
      [recorded.zh],
    ])
    // The other platforms of the list were asked for, and are not there: the log says so of each.
    const absent = mirror.mirror.logLines.filter(({ msg }) => msg === 'the origin does not publish a listed platform')
    const { versions } = JSON.parse(readVector(FOLDER + list))
    const listed = versions.find(({ version }: { version: string }) => version === recorded.version).platforms
    expect(absent).toHaveLength(listed.length - 1)
  })

  test.each(NO_LISTS)('an answer to another question in the place of a list: $file', async ({ file, status, code }) => {
    const site = createRecordedSite(registry(TERRAFORM, { 'acme/widget/versions': readVector(FOLDER + file) }))
    await using mirror = await startMirrorOver(site, { hosts: [TERRAFORM] })
    const answer = await mirror.ask(`${TERRAFORM}/acme/widget/index.json`)
    expect([answer.status, answer.json.code]).toEqual([status, code])
    if (status === 200) expect(answer.json).toEqual({ versions: {} })
  })

  test.each(CASSETTES)('a recorded conversation: $file', async ({ file, host, name, count }) => {
    const answers = cassette(readVector(`${FOLDER}${TERRAFORM}/vcr/${file}`))
    await using mirror = await startMirrorOver(createRecordedSite(answers), { hosts: [host] })
    const { status, json } = await mirror.ask(`${host}/${name}/index.json`)
    if (count === undefined) {
      expect([status, json.code]).toEqual([404, 'PROVIDER_NOT_FOUND'])
      return
    }
    const recorded = String(answers[`https://${host}/v1/providers/${name}/versions`]?.body)
    expect([status, ...Object.keys(json.versions).sort()]).toEqual([200, ...versionsIn(recorded)])
    expect(versionsIn(recorded)).toHaveLength(count)
  })

  test('every discovery document leads to the service that it offers, and to nothing if it offers none', async () => {
    const documents = readJsonVector(`${FOLDER}discovery.json`) as { body: unknown; headers?: Record<string, string> }[]
    expect(documents).toHaveLength(SERVICES.length)
    const answers: Record<string, Reply | string> = {}
    for (const [index, { host, base }] of SERVICES.entries()) {
      const { body, headers } = documents[index] ?? {}
      if (base !== undefined) answers[`${base}acme/widget/versions`] = '{"versions":[{"version":"1.2.3"}]}'
      if (body === null) continue
      answers[`https://${host}/.well-known/terraform.json`] = {
        body: JSON.stringify(body),
        ...(headers && { headers }),
      }
    }
    await using mirror = await startMirrorOver(createRecordedSite(answers), { hosts: SERVICES.map(({ host }) => host) })
    for (const { host, base } of SERVICES) {
      const { status, json } = await mirror.ask(`${host}/acme/widget/index.json`)
      const outcome = base === undefined ? [404, 'NO_PROVIDER_SERVICE', undefined] : [200, undefined, { '1.2.3': {} }]
      expect([status, json.code, json.versions], host).toEqual(outcome)
      expect(mirror.asked.get(`https://${host}/.well-known/terraform.json`), host).toBe(1)
      if (base !== undefined) expect(mirror.asked.get(`${base}acme/widget/versions`), host).toBe(1)
    }
  })

  test('the rest is about modules (module-responses.test.ts): as written, without the host of an origin, no path leads anywhere', async () => {
    const exchanges = readJsonVector(`${FOLDER}recorded-exchanges.json`) as { request: string }[]
    const paths = exchanges.flatMap(({ request }) => URL.parse(request.split(' ')[1] ?? '')?.pathname ?? [])
    expect(exchanges).toHaveLength(12)
    expect(paths).toHaveLength(10)
    expect(paths.filter((path) => path.includes('/providers/'))).toEqual([])
    await using registryMirror = await startMirrorOver(createRecordedSite({}), { hosts: [TERRAFORM] })
    for (const path of paths) {
      const answer = await registryMirror.mirror.ask(encodeURI(path))
      expect([answer.status, answer.json().code], path).toEqual([404, 'ROUTE_NOT_FOUND'])
    }
    // Values of a header and strings of a configuration: nothing that a registry answers at a URL of its own.
    expect(Object.keys(readJsonVector(`${FOLDER}module-source-forms.json`) as object).length).toBeGreaterThan(0)
  })
})

/** A registry with these answers below its service, by path. */
function registry(host: string, answers: Record<string, string>): Record<string, Reply | string> {
  const entries = Object.entries(answers).map(([path, body]) => [`https://${host}/v1/providers/${path}`, body])
  return { [`https://${host}/.well-known/terraform.json`]: DISCOVERY, ...Object.fromEntries(entries) }
}

/** The canonical versions of a list, sorted by text. */
function versionsIn(recorded: string): string[] {
  const { versions }: { versions: { version: string }[] } = JSON.parse(recorded)
  return versions.flatMap(({ version }) => canonicalVersion(version) ?? []).sort()
}

/** The answers of a VCR cassette, by URL. */
function cassette(recorded: string): Record<string, Reply> {
  interface Interaction {
    readonly request: { readonly uri: string }
    readonly response: { readonly status: { readonly code: number }; readonly body: { readonly string: string } }
  }
  const { http_interactions: interactions }: { http_interactions: Interaction[] } = parse(recorded)
  return Object.fromEntries(
    interactions.map(({ request, response: { status, body } }) => [
      request.uri,
      { status: status.code, body: body.string },
    ]),
  )
}
