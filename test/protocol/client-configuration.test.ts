import { describe, expect, test } from 'vitest'
import {
  type ClientConfigurationOptions,
  formatClientConfiguration,
  formatShellSetup,
} from '../../src/protocol/client-configuration.ts'

function format(options: Partial<ClientConfigurationOptions>): string {
  return formatClientConfiguration({
    client: 'terraform',
    door: 'mirror',
    direct: false,
    baseUrl: 'https://mirror.example/',
    origins: ['registry.terraform.io', 'registry.opentofu.org'],
    ...options,
  })
}

/** What the client reads of it. */
function withoutComments(text: string): string {
  return text.replaceAll(/^ *#.*\n/gm, '')
}

describe('a client configuration', () => {
  test('for the network mirror alone is as short as it can be', () => {
    expect(format({})).toBe(
      'provider_installation {\n  network_mirror {\n    url = "https://mirror.example/providers/"\n  }\n}\n',
    )
  })

  test('with direct excludes what the mirror serves, so that its origins are not asked', () => {
    expect(format({ direct: true })).toContain(
      '  direct {\n    exclude = ["registry.terraform.io/*/*", "registry.opentofu.org/*/*"]\n  }\n',
    )
  })

  test('for OpenTofu lets the lock file have all platforms where that works, and only there', () => {
    expect(format({ client: 'tofu' })).toContain('trust_all_hashes = true')
    expect(format({ client: 'tofu', origins: ['registry.acme.example'] })).not.toContain('trust_all_hashes')
    expect(format({ client: 'terraform' })).not.toContain('trust_all_hashes')
  })

  test('of host blocks names both services of every host, in every block (B70)', () => {
    const text = format({ door: 'host', baseUrl: 'https://mirror.example/behind/' })
    expect(withoutComments(text)).not.toContain('provider_installation')
    for (const host of ['registry.terraform.io', 'registry.opentofu.org']) {
      expect(text).toContain(
        `host "${host}" {\n  services = {\n    "providers.v1" = "https://mirror.example/behind/v1/providers/${host}/"\n` +
          `    "modules.v1"   = "https://mirror.example/behind/v1/modules/${host}/"\n  }\n}\n`,
      )
    }
    expect(text).toMatch(/# .*in no documentation/)
    expect(format({ door: 'host', client: 'tofu' })).toContain('"tofu providers lock"')
  })

  test('by both doors has the network mirror and the host blocks', () => {
    const text = format({ door: 'both' })
    expect(text).toBe(`${format({ door: 'mirror' })}\n${format({ door: 'host' })}`)
  })

  describe('for an origin with a port, which no network mirror can be asked for (A19)', () => {
    const origins = ['registry.terraform.io', 'registry.acme.example:8443']

    test('says so, and lets direct have it', () => {
      const text = format({ origins, direct: true })
      expect(text).toMatch(/^# registry\.acme\.example:8443: .*needs a host block/)
      expect(text).toContain('/providers/"\n    exclude = ["registry.acme.example:8443/*/*"]\n')
      expect(text).toContain('direct {\n    exclude = ["registry.terraform.io/*/*"]\n')
    })

    test('by both doors leads it to its host block', () => {
      const text = format({ origins, door: 'both' })
      expect(text).toContain('direct {\n    include = ["registry.acme.example:8443/*/*"]\n')
      expect(text).toContain('host "registry.acme.example:8443" {')
    })
  })

  test('for a pattern of origins says what it cannot write, and writes no pattern that clients refuse', () => {
    const origins = ['registry.terraform.io', '*.corp.example']
    for (const options of [{ direct: true }, { door: 'host' }, { door: 'both', direct: true }] as const) {
      const text = format({ ...options, origins })
      expect(text).toMatch(/# .*\*\.corp\.example/)
      expect(withoutComments(text)).not.toContain('corp.example')
    }
    // No list at all: an empty one excludes nothing either, and this is plainer.
    expect(withoutComments(format({ direct: true, origins: ['*.corp.example'] }))).toContain('  direct {\n  }\n')
  })

  test('writes international names as clients want them: Unicode in labels, punycode in URLs (D6)', () => {
    const text = format({ door: 'both', direct: true, origins: ['xn--bcher-kva.example'] })
    expect(text).toContain('exclude = ["bücher.example/*/*"]')
    expect(text).toContain('host "bücher.example" {')
    expect(text).toContain('https://mirror.example/v1/providers/xn--bcher-kva.example/')
  })

  test('for a shell is a file in the current folder, and a variable that names it', () => {
    expect(formatShellSetup('a {\n}\n')).toEqual([
      "cat > terramirror.tfrc <<'END'",
      'a {',
      '}',
      'END',
      'export TF_CLI_CONFIG_FILE="$PWD/terramirror.tfrc"',
    ])
  })
})
