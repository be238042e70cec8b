import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ConfigurationFacts, readConfiguration } from '../../src/hcl/hcl-reader.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
import { formatProviderAddress } from '../../src/protocol/provider-address.ts'
import { createWorkspace, terraformAvailable } from '../e2e/terraform-cli.ts'

type Files = Readonly<Record<string, string>>

const read = (files: Files, ...rest: [folder?: string]) => readConfiguration(new Map(Object.entries(files)), ...rest)

/** `{ 'registry.terraform.io/hashicorp/aws': '~> 5.0' }`; empty where nothing is said of the version. */
function constraintsOf({ providers }: ConfigurationFacts): Record<string, string> {
  return Object.fromEntries(
    providers.map(({ source, constraint }) => [formatProviderAddress(source), constraint ?? '']),
  )
}

const required = (entries: string) => `terraform {\n  required_providers {\n${entries}\n  }\n}\n`
const HASHICORP = 'registry.terraform.io/hashicorp'

describe('providers', () => {
  it('are those of required_providers, as text, as object, with every form of a source', async () => {
    const facts = await read({
      'main.tf': required(`    aws = "~> 5.0"
    google = {
      source  = "hashicorp/google"
      version = ">= 4.0, < 6.0"
    }
    corp = { source = "Registry.Acme.example:8443/Team/Corp", version = "1.2.3" }
    bare = { "source" : "random" }
    null = {}
    aliased = {
      source                = "acme/aliased"
      configuration_aliases = [aliased.east, aliased.west]
    }`),
    })
    expect(facts.problems).toEqual([])
    expect(constraintsOf(facts)).toEqual({
      [`${HASHICORP}/aws`]: '~> 5.0',
      [`${HASHICORP}/google`]: '>= 4.0, < 6.0',
      'registry.acme.example:8443/team/corp': '1.2.3',
      [`${HASHICORP}/random`]: '',
      [`${HASHICORP}/null`]: '',
      'registry.terraform.io/acme/aliased': '',
    })
    expect(facts.providers.map(({ file, line }) => `${file}:${line}`).slice(0, 3)).toEqual([
      'main.tf:3',
      'main.tf:4',
      'main.tf:8',
    ])
  })

  it('of several blocks and files are merged, with all that is said of a version', async () => {
    const facts = await read({
      'a.tf': required('    aws = { source = "hashicorp/aws", version = ">= 5.0" }') + required('    tls = "~> 4.0"'),
      'b.tf': required(
        '    amazon = { source = "hashicorp/aws", version = "!= 5.1.0" }\n    aws = { version = "< 6.0" }',
      ),
      'c.tf':
        'provider "aws" {\n  version = ">= 5.0"\n}\nprovider "aws" {\n  alias   = "west"\n  version = "< 7.0"\n}\n',
    })
    expect(facts.problems).toEqual([])
    expect(constraintsOf(facts)).toEqual({
      [`${HASHICORP}/aws`]: '>= 5.0, < 6.0, != 5.1.0, < 7.0',
      [`${HASHICORP}/tls`]: '~> 4.0',
    })
  })

  it('are implied by resources, data sources, ephemeral resources, checks, imports and provider blocks', async () => {
    const facts = await read({
      'main.tf': `${required('    mine = { source = "acme/mine" }')}
resource "aws_instance" "a" {}
data "http" "b" {}
ephemeral "vault_token" "c" {}
check "up" {
  data "dns_a_record_set" "d" {}
}
import {
  to = local_file.e
  id = "x"
}
provider "google" {}
resource "mine_thing" "f" {}
resource "thing_one" "g" {
  provider = mine.west
}
resource "thing_two" "h" {
  provider = archive
}
data "thing_three" "i" {
  provider = "tls.old"
}
resource "terraform_data" "j" {}
data "terraform_remote_state" "k" {}
`,
    })
    expect(facts.problems).toEqual([])
    expect(Object.keys(constraintsOf(facts)).sort()).toEqual(
      ['archive', 'aws', 'dns', 'google', 'http', 'local', 'tls', 'vault']
        .map((type) => `${HASHICORP}/${type}`)
        .concat('registry.terraform.io/acme/mine')
        .sort(),
    )
  })

  it('that are a part of the client are left out, however they are named', async () => {
    const facts = await read({
      'main.tf': `${required('    tf = { source = "terraform.io/builtin/terraform" }')}provider "terraform" {}\n`,
    })
    expect(facts).toEqual({ providers: [], modules: [], problems: [] })
  })

  it('without a host come from the registry that is asked for', async () => {
    const files = new Map([['main.tofu', `${required('    aws = { source = "hashicorp/aws" }')}provider "tls" {}\n`]])
    const facts = await readConfiguration(files, '', { registry: parseHostname('registry.opentofu.org') })
    expect(Object.keys(constraintsOf(facts))).toEqual([
      'registry.opentofu.org/hashicorp/aws',
      'registry.opentofu.org/hashicorp/tls',
    ])
  })
})

describe('modules', () => {
  it('are called with source and version as written', async () => {
    const { modules, problems } = await read({
      'main.tf': `module "vpc" {
  source  = "terraform-aws-modules/vpc/aws"
  version = "~> 5.0"
  cidr    = var.cidr
}

module "git" {
  source = "git::https://example.com/net.git?ref=v1.2.0"
  providers = { aws = aws.west }
}
module "local" { source = "./modules/local" }
`,
    })
    expect(problems).toEqual([])
    expect(modules).toEqual([
      { name: 'vpc', source: 'terraform-aws-modules/vpc/aws', version: '~> 5.0', file: 'main.tf', line: 1 },
      {
        name: 'git',
        source: 'git::https://example.com/net.git?ref=v1.2.0',
        version: undefined,
        file: 'main.tf',
        line: 7,
      },
      { name: 'local', source: './modules/local', version: undefined, file: 'main.tf', line: 11 },
    ])
  })
})

describe('override files', () => {
  it('replace what they set, in the order of their names, and nothing else', async () => {
    const facts = await read({
      'main.tf': `${required('    aws = { source = "hashicorp/aws", version = "~> 4.0" }\n    tls = "~> 4.0"')}
module "net" {
  source  = "acme/net/aws"
  version = "1.0.0"
}
module "dns" {
  source = "./dns"
}
resource "thing_x" "x" {}
`,
      'a_override.tf': required('    aws = { source = "acme/aws", version = "~> 5.0" }'),
      'override.tf': `module "net" {\n  version = "2.0.0"\n}\nresource "thing_x" "x" {\n  provider = aws\n}\n`,
      'z_override.tf.json': '{"module": {"dns": {"source": "./other"}}}',
    })
    expect(facts.problems).toEqual([])
    expect(constraintsOf(facts)).toEqual({ 'registry.terraform.io/acme/aws': '~> 5.0', [`${HASHICORP}/tls`]: '~> 4.0' })
    expect(facts.modules.map(({ name, source, version }) => [name, source, version])).toEqual([
      ['net', 'acme/net/aws', '2.0.0'],
      ['dns', './other', undefined],
    ])
  })

  it('with nothing to override are a problem', async () => {
    const { problems } = await read({ 'override.tf': 'module "net" {\n  source = "./net"\n}\n' })
    expect(problems).toMatchObject([{ file: 'override.tf', line: 1 }])
  })
})

describe('.tf.json', () => {
  it('means the same as .tf, with labels as objects or as lists of them', async () => {
    const hcl = await read({
      'main.tf': `${required('    aws = { source = "hashicorp/aws", version = "~> 5.0" }\n    tls = "4.0.0"')}
provider "google" {}
provider "google" {
  alias = "b"
}
resource "null_resource" "a" {}
resource "null_resource" "b" {
  provider = aws.west
}
data "http" "c" {}
module "net" {
  source  = "acme/net/aws"
  version = "1.0.0"
}
module "dns" {
  source = "./dns"
}
`,
    })
    const json = await read({
      'main.tf.json': JSON.stringify({
        '//': 'a comment',
        terraform: [
          { required_providers: { aws: { source: 'hashicorp/aws', version: '~> 5.0' } } },
          { required_providers: [{ tls: '4.0.0' }] },
        ],
        provider: { google: [{}, { alias: 'b' }] },
        resource: [{ null_resource: { a: {} } }, { null_resource: [{ b: [{ provider: 'aws.west' }] }] }],
        data: { http: { c: {} } },
        module: [{ net: { source: 'acme/net/aws', version: '1.0.0' } }, { dns: { source: './dns', version: null } }],
      }),
    })
    expect(json.problems).toEqual([])
    expect(constraintsOf(json)).toEqual(constraintsOf(hcl))
    const plain = (facts: ConfigurationFacts) => facts.modules.map(({ file: _, line: __, ...call }) => call)
    expect(plain(json)).toEqual(plain(hcl))
  })

  it('keeps names that come twice, knows templates, and tells lines', async () => {
    const dollar = '$'
    const facts = await read({
      'main.tf.json': `{
  "module": { "a": {
    "source": "./a-${dollar}${dollar}{x}"
  } },
  "module": { "b": {
    "source": "./${dollar}{path}"
  } },
  "module": { "c": { "source": "x\\/y\\u002fz", "version": 3 } }
}`,
    })
    expect(facts.modules).toMatchObject([{ name: 'a', source: `./a-${dollar}{x}`, line: 2 }])
    expect(facts.problems).toMatchObject([
      { line: 6, reason: expect.stringContaining('needs evaluation') },
      { line: 8, reason: expect.stringContaining('is not a string') },
    ])
    const truncated = await read({ 'main.tf.json': '{\n"module": {\n' })
    expect(truncated.problems).toEqual([{ file: 'main.tf.json', line: 3, reason: 'Invalid JSON' }])
    const wrong = await read({ 'main.tf.json': '{\n"a": 1,\n "b" 2}' })
    expect(wrong.problems).toEqual([{ file: 'main.tf.json', line: 3, reason: 'Invalid JSON' }])
    expect((await read({ 'main.tf.json': '{"module":\n "x"}' })).problems).toMatchObject([{ line: 2 }])
  })
})

describe('problems', () => {
  it('of one file do not hide the others, and have file and line', async () => {
    const facts = await read({
      'a.tf': 'resource "aws_instance" "x" {\n  ami = \n}\n',
      'b.tf': 'provider "tls" {}\nmodule "net" {\n  source = "./net"\n}\n',
      'c.tf.json': '{',
    })
    expect(facts.problems.map(({ file, line }) => `${file}:${line}`)).toEqual(['a.tf:2', 'c.tf.json:1'])
    expect(Object.keys(constraintsOf(facts))).toEqual([`${HASHICORP}/tls`])
    expect(facts.modules).toHaveLength(1)
  })

  it.each<[where: string, reason: string, text: string]>([
    ['main.tf:4', 'needs evaluation', required(`    aws = {\n      source = "$${'{var.x}'}/aws"\n    }`)],
    ['main.tf:3', 'needs evaluation', required('    aws = { version = var.version }')],
    ['main.tf:3', 'must be a string or an object', required('    aws = local.aws')],
    ['main.tf:3', 'not region', required('    aws = { region = "x" }')],
    ['main.tf:3', 'not a version constraint', required('    aws = "newest"')],
    ['main.tf:3', 'not a version constraint', required('    aws = { version = ">= v1" }')],
    ['main.tf:3', 'not a provider address', required('    aws = { source = "a/b/c/d" }')],
    ['main.tf:3', 'without terraform-provider-', required('    aws = { source = "hashicorp/terraform-provider-aws" }')],
    ['main.tf:3', 'legacy address', required('    aws = { source = "-/aws" }')],
    ['main.tf:2', 'needs evaluation', 'module "x" {\n  source = var.source\n}\n'],
    ['main.tf:3', 'needs evaluation', 'module "x" {\n  source = "a/b/c"\n  version = local.v\n}\n'],
    ['main.tf:3', 'not a version constraint', 'module "x" {\n  source = "a/b/c"\n  version = "x"\n}\n'],
    ['main.tf:1', 'has no source', 'module "x" {}\n'],
    ['main.tf:2', 'Duplicate module x', 'module "x" { source = "./a" }\nmodule "x" { source = "./b" }\n'],
    ['main.tf:1', 'Missing name for module', 'module { source = "./a" }\n'],
    ['main.tf:1', 'Extraneous label for provider', 'provider "a" "b" {}\n'],
    ['main.tf:2', 'Invalid provider reference', 'resource "a_b" "c" {\n  provider = [aws]\n}\n'],
    ['main.tf:1', 'not a provider address', 'resource "_b" "c" {}\n'],
  ])('at %s: %s', async (where, reason, text) => {
    const facts = await read({ 'main.tf': text })
    expect(facts.problems.map(({ file, line }) => `${file}:${line}`)).toEqual([where])
    expect(facts.problems[0]?.reason).toContain(reason)
  })

  it('keep a provider whose source or version is not known from being taken for another one', async () => {
    for (const entry of ['{ source = var.x }', '{ source = "a/aws", version = var.v }', '"new"', 'var.x']) {
      const facts = await read({ 'main.tf': `${required(`    aws = ${entry}`)}resource "aws_x" "y" {}\n` })
      expect(facts.problems).toHaveLength(1)
      expect(facts.providers).toEqual([])
    }
  })
})

describe('the folder', () => {
  const module = (name: string) => `module "${name}" {\n  source = "./x"\n}\n`
  const names = async (files: Files, folder?: string) => (await read(files, folder)).modules.map(({ name }) => name)

  it('is the one that is asked for, however it is written; nothing below or beside it counts', async () => {
    const files = {
      'main.tf': module('root'),
      './net/a.tf': module('net'),
      'net/sub/b.tf': module('sub'),
      'net.tf': module('beside'),
    }
    expect(await names(files)).toEqual(['root', 'beside'])
    for (const folder of ['net', './net', 'net/']) expect(await names(files, folder)).toEqual(['net'])
    expect(await names(files, 'net/sub')).toEqual(['sub'])
    expect(await names(files, 'nowhere')).toEqual([])
  })

  it('has configuration files, not those that editors leave, tests or anything else', async () => {
    const kinds = [
      'a.tf',
      '.a.tf',
      'b.tf~',
      '#c.tf#',
      'd.tftest.hcl',
      'e.tfvars',
      'f.hcl',
      'g.TF',
      'h.tf.bak',
      'i.json',
      'j.tofu',
    ]
    expect(await names(Object.fromEntries(kinds.map((name) => [name, module(name.replaceAll('.', '-'))])))).toEqual([
      'a-tf',
      'j-tofu',
    ])
  })

  it('of OpenTofu: a .tofu file hides the .tf of its name', async () => {
    expect(await names({ 'a.tf': module('one'), 'a.tofu': module('two'), 'b.tf': module('three') })).toEqual([
      'two',
      'three',
    ])
  })
})

describe.skipIf(terraformAvailable() === undefined)('the real terraform', () => {
  const CONFIGURATIONS: Readonly<Record<string, Files>> = {
    'every kind of block': {
      'main.tf': `${required('    mine = { source = "acme/mine", version = "~> 1.0, != 1.2.0" }\n    null = "3.0.0"\n    other = { source = "registry.acme.example/team/other" }')}
resource "aws_instance" "a" {}
data "http" "b" {}
ephemeral "random_password" "c" {}
resource "mine_thing" "d" {}
resource "thing_one" "e" {
  provider = mine.west
}
resource "thing_two" "f" {
  provider = archive
}
resource "terraform_data" "g" {}
check "up" {
  data "dns_a_record_set" "h" {}
  assert {
    condition     = aws_instance.a.id != ""
    error_message = "no"
  }
}
provider "google" {}
provider "mine" {
  alias = "west"
}
`,
    },
    'JSON beside HCL, and overrides': {
      'main.tf': `${required('    aws = { source = "hashicorp/aws", version = "~> 4.0" }')}resource "thing_x" "x" {}\n`,
      'more.tf.json': JSON.stringify({
        provider: { google: [{ alias: 'a' }, {}] },
        resource: { null_resource: [{ a: {} }, { b: { provider: 'tls' } }] },
        data: [{ http: { c: {} } }],
      }),
      'a_override.tf': required('    aws = { source = "acme/aws", version = "~> 5.0" }'),
      'override.tf': 'resource "thing_x" "x" {\n  provider = aws\n}\n',
      '.hidden.tf': 'provider "hidden" {}\n',
    },
  }

  it.each(Object.keys(CONFIGURATIONS))('needs the same providers: %s', async (name) => {
    const files = CONFIGURATIONS[name] ?? {}
    await using terraform = await createWorkspace({ providers: {}, cliConfig: '' })
    for (const [path, text] of Object.entries(files)) await writeFile(join(terraform.dir, path), text)
    const run = await terraform.run(['providers'])
    expect(run.code, run.output).toBe(0)
    const lines = [...run.output.matchAll(/provider\[(.+?)\](?: (.*))?$/gm)]
    const told = lines.flatMap(([, address = '', constraint = '']) =>
      address.startsWith('terraform.io/builtin/') ? [] : [[address, constraint] as const],
    )
    const facts = await read(files)
    expect(facts.problems).toEqual([])
    expect(constraintsOf(facts)).toEqual(Object.fromEntries(told))
  })

  it('calls the same modules, folder by folder', async () => {
    const files: Files = {
      'main.tf': 'module "net" {\n  source = "./net"\n}\n',
      'more.tf.json': '{"module": {"dns": {"source": "./dns"}, "zone": [{"source": "./nowhere"}]}}',
      'z_override.tf': 'module "zone" {\n  source = "./dns/zone"\n}\n',
      'net/main.tf': 'module "sub" {\n  source = "./sub"\n}\n',
      'net/sub/main.tf': '# nothing\n',
      'dns/main.tf': 'module "zone" {\n  source = "./zone"\n}\n',
      'dns/zone/main.tf': '# nothing\n',
    }
    await using terraform = await createWorkspace({ providers: {}, cliConfig: '' })
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(terraform.dir, path)), { recursive: true })
      await writeFile(join(terraform.dir, path), text)
    }
    const run = await terraform.run(['get'])
    expect(run.code, run.output).toBe(0)
    const manifest = await readFile(join(terraform.dir, '.terraform/modules/modules.json'), 'utf8')
    const { Modules: installed } = JSON.parse(manifest) as { Modules: { Key: string; Source: string; Dir: string }[] }
    const folders = new Map(installed.map(({ Key, Dir }) => [Key, Dir === '.' ? '' : Dir]))
    for (const [key, folder] of folders) {
      const { modules, problems } = await read(files, folder)
      expect(problems).toEqual([])
      const below = installed.filter((each) => each.Key !== '' && each.Key.split('.').slice(0, -1).join('.') === key)
      expect(Object.fromEntries(modules.map(({ name, source }) => [name, source]))).toEqual(
        Object.fromEntries(below.map(({ Key, Source }) => [Key.split('.').at(-1), Source])),
      )
    }
  })

  it.each<[text: string, line: number]>([
    ['resource "aws_instance" "x" {\n  ami =\n}\n', 2],
    ['module "x" {\n  source = var.x\n}\n', 2],
    ['module "x" {\n}\n', 1],
    [required('    aws = { source = "a/b/c/d" }'), 3],
    [required('    aws = { source = "hashicorp/terraform-provider-aws" }'), 3],
    [required('    aws = { version = "newest" }'), 3],
    [required('    aws = { version = ">= v1" }'), 3],
    [required('    aws = ["a"]'), 3],
    ['provider "a" "b" {}\n', 1],
    ['module "x" { source = "./a" }\nmodule "x" { source = "./b" }\n', 2],
    ['resource "a_b" "c"\n{\n}\n', 1],
    ['resource "a_b" "c" {\n', 1],
    ['a = 1 b = 2\n', 1],
  ])('refuses what is a problem here, at the same line: %j', async (text, line) => {
    await using terraform = await createWorkspace({ providers: {}, cliConfig: '' })
    await writeFile(join(terraform.dir, 'main.tf'), text)
    const run = await terraform.run(['init', '-backend=false'])
    expect(run.code).toBe(1)
    const { problems } = await read({ 'main.tf': text })
    expect(problems.map((each) => each.line)).toEqual([line])
    expect(run.output).toContain(`main.tf line ${line}`)
  })
})
