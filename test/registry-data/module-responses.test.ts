import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { gitHttpBackend } from '../origin/git-host.ts'
import { describeVectors, readJsonVector, readVector } from '../protocol/vectors.ts'
import { SourceFolder } from '../upstream/module-source/archive-fixture.ts'
import { canonicalVersion } from './client-rules.ts'
import type { Reply } from './data-origin.ts'
import { createRecordedSite } from './recorded-site.ts'
import { startMirrorOver } from './registry-mirror.ts'

const FOLDER = 'responses/'
const TERRAFORM = 'registry.terraform.io'
const OPENTOFU = 'registry.opentofu.org'
const OTHERS = ['gitlab.example.com', 'other.example', 'api.github.com']

/*
 * Every recorded answer about modules of `vectors/responses`, and what comes of it. The archives that they point to are
 * made here; the repositories are not there, so what is judged of them is where they were sought.
 */

/** One exchange of `recorded-exchanges.json`, in the order of the file; a host of its own where none was recorded. */
const EXCHANGES: readonly Exchange[] = [
  {
    at: `${TERRAFORM}/hashicorp/consul/aws/0.7.4`,
    archive: 'api.github.com/repos/hashicorp/terraform-aws-consul/tarball/v0.7.4',
  },
  {
    at: `${TERRAFORM}/clouddrove/ec2/aws/0.12.5`,
    archive: 'api.github.com/repos/clouddrove/terraform-aws-ec2/tarball/0.12.5',
  },
  {
    at: 'other.example/mt5225/sg/aws/0.2.1',
    archive: 'github.com/mt5225/tf-my-sg/raw/master/terraform-aws-sg_v0.2.1.tgz',
  },
  { at: `${TERRAFORM}/kube-hetzner/kube-hetzner/hcloud/2.19.2`, git: 'kube-hetzner/terraform-hcloud-kube-hetzner' },
  { at: `${TERRAFORM}/kube-hetzner/kube-hetzner/hcloud/3.1.0`, git: 'kube-hetzner/terraform-hcloud-kube-hetzner' },
  { at: `${TERRAFORM}/sourcegraph/executors/aws/1.0.0`, git: 'sourcegraph/terraform-aws-executors' },
  { at: `${OPENTOFU}/hashicorp/consul/aws/0.0.1`, git: 'hashicorp/terraform-aws-consul' },
  { at: `${OPENTOFU}/foo/bar/baz/0.0.1`, git: 'foo/terraform-baz-bar' },
  {
    at: 'gitlab.example.com/group/hello-world/local/1.0.0',
    archive: 'gitlab.example.com/api/v4/packages/terraform/modules/v1/group/hello-world/local/1.0.0/file?token=',
  },
  { at: 'other.example/test/mymodule/gcp/1.2.3', archive: 'other.example/test/mymodule/gcp/1.2.3/archive.tgz' },
  { at: `${TERRAFORM}/does/not/exist/1.0.0` },
  // A remark of two projects, and no answer.
  { at: undefined },
]

interface Exchange {
  /** `HOST/NAMESPACE/NAME/SYSTEM/VERSION`, as the mirror is asked. */
  readonly at: string | undefined
  /** Without `https://`: an archive must be fetched from here. */
  readonly archive?: string
  /** A repository of github.com must be asked for. */
  readonly git?: string
}

interface Recorded {
  readonly request: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

describeVectors('every recorded answer about modules has the outcome that it should', () => {
  test('recorded exchanges', async (context) => {
    if (gitHttpBackend() === undefined) return context.skip()
    const recorded = readJsonVector(`${FOLDER}recorded-exchanges.json`) as Recorded[]
    expect(recorded).toHaveLength(EXCHANGES.length)
    await using source = await SourceFolder.make({ 'top/main.tf': '# top\n' })
    const archive: Reply = {
      body: source.run('tar', '-cz', 'top'),
      headers: { 'content-type': 'application/octet-stream' },
    }
    const answers: Record<string, Reply | string> = {}
    for (const [index, exchange] of EXCHANGES.entries()) {
      if (exchange.at === undefined) continue
      const { status, headers = {}, body = '' } = recorded[index] ?? {}
      const [host = '', namespace, name, system, version] = exchange.at.split('/')
      const base = `https://${host}${SERVICES[host] ?? '/v1/modules/'}${namespace}/${name}/${system}`
      answers[`https://${host}/.well-known/terraform.json`] = `{"modules.v1":"${SERVICES[host] ?? '/v1/modules/'}"}`
      if (status === 404) continue
      const earlier = JSON.parse(String(answers[`${base}/versions`] ?? '{"modules":[{"versions":[]}]}'))
      earlier.modules[0].versions.push({ version })
      answers[`${base}/versions`] = JSON.stringify(earlier)
      // Length and coding of the answer are those of this one.
      const { 'content-encoding': _, 'content-length': __, ...kept } = headers
      answers[`${base}/${version}/download`] = { status: status ?? 204, headers: kept, body }
      if (exchange.archive !== undefined) answers[`https://${exchange.archive}`] = archive
    }
    await using registry = await startMirrorOver(createRecordedSite(answers), {
      hosts: [TERRAFORM, OPENTOFU, ...OTHERS],
    })
    for (const { at, archive: wanted, git } of EXCHANGES) {
      if (at === undefined) continue
      const answer = await registry.mirror.ask(`/v1/modules/${at}/download`)
      if (wanted !== undefined) {
        expect(answer.status, `${at}: ${answer.body}`).toBe(204)
        expect(registry.asked.get(`https://${wanted}`), at).toBe(1)
      } else if (git !== undefined) {
        expect([answer.status, answer.json().upstream_url], at).toEqual([502, `https://github.com/${git}`])
        expect(answer.json().code).toBe('UPSTREAM_STATUS')
      } else {
        expect([answer.status, answer.json().code], at).toEqual([404, 'MODULE_NOT_FOUND'])
      }
    }
  })

  test('the lists of hashicorp/consul/aws, of a file and of a conversation', async () => {
    for (const list of [
      readVector(`${FOLDER}${TERRAFORM}/module_consul_aws_versions.json`),
      String(
        cassette('fetches_module_versions')[`https://${TERRAFORM}/v1/modules/hashicorp/consul/aws/versions`]?.body,
      ),
    ]) {
      await using registry = await startMirrorOver(site('hashicorp/consul/aws/versions', { body: list }), {
        hosts: [TERRAFORM],
      })
      const answer = await registry.mirror.ask(`/v1/modules/${TERRAFORM}/hashicorp/consul/aws/versions`)
      const [{ versions }] = JSON.parse(list).modules
      const wanted = versions.map(({ version }: { version: string }) => canonicalVersion(version))
      const found = answer.json().modules[0].versions.map(({ version }: { version: string }) => version)
      expect([answer.status, found.toSorted()]).toEqual([200, [...new Set(wanted)].sort()])
      expect(found.length).toBeGreaterThan(10)
    }
  })

  test('an answer to another question in the place of a list', async () => {
    const body = readVector(`${FOLDER}${TERRAFORM}/module_consul_aws_0.3.8.json.gz`)
    await using registry = await startMirrorOver(site('hashicorp/consul/aws/versions', { body }), {
      hosts: [TERRAFORM],
    })
    const answer = await registry.mirror.ask(`/v1/modules/${TERRAFORM}/hashicorp/consul/aws/versions`)
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_INVALID'])
  })

  test('conversations: a git:// location is refused by its name; a module that is not there is not there', async () => {
    const answers = {
      ...cassette('fetches_the_source_for_a_module_dependency'),
      ...cassette('raises_DependencyNotFound_when_the_module_does_not_exist'),
      [`https://${TERRAFORM}/v1/modules/hashicorp/consul/aws/versions`]:
        '{"modules":[{"versions":[{"version":"0.9.3"}]}]}',
    }
    await using registry = await startMirrorOver(createRecordedSite(answers), { hosts: [TERRAFORM] })
    const refused = await registry.mirror.ask(`/v1/modules/${TERRAFORM}/hashicorp/consul/aws/0.9.3/download`)
    expect([refused.status, refused.json().code]).toEqual([502, 'MODULE_SOURCE_REFUSED'])
    expect(refused.json().error).toContain('(git)')
    const absent = await registry.mirror.ask(`/v1/modules/${TERRAFORM}/does/not/exist/versions`)
    expect([absent.status, absent.json().code]).toEqual([404, 'MODULE_NOT_FOUND'])
  })
})

const SERVICES: Readonly<Record<string, string>> = {
  'gitlab.example.com': '/api/v4/packages/terraform/modules/v1/',
  'other.example': '/',
}

function site(path: string, reply: Reply) {
  return createRecordedSite({
    [`https://${TERRAFORM}/.well-known/terraform.json`]: '{"modules.v1":"/v1/modules/"}',
    [`https://${TERRAFORM}/v1/modules/${path}`]: reply,
  })
}

/** The answers of a VCR cassette, by URL. */
function cassette(name: string): Record<string, Reply> {
  interface Interaction {
    readonly request: { readonly uri: string }
    readonly response: {
      readonly status: { readonly code: number }
      readonly headers: Readonly<Record<string, readonly string[]>>
      readonly body: { readonly string: string }
    }
  }
  const { http_interactions: interactions }: { http_interactions: Interaction[] } = parse(
    readVector(`${FOLDER}${TERRAFORM}/vcr/${name}.yml`),
  )
  return Object.fromEntries(
    interactions.map(({ request, response: { status, headers, body } }) => {
      const [location] = headers['X-Terraform-Get'] ?? []
      const kept = location === undefined ? {} : { headers: { 'x-terraform-get': location } }
      return [request.uri, { status: status.code, body: body.string, ...kept }]
    }),
  )
}
