import { Command, CommanderError } from 'commander'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { addClientConfig } from '../../src/cli/client-config.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

interface Run {
  /** As the process would exit. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command in this process. */
async function run(...args: string[]): Promise<Run> {
  let stdout = ''
  let stderr = ''
  const take = (text: unknown): boolean => {
    stdout += String(text)
    return true
  }
  vi.spyOn(process.stdout, 'write').mockImplementation(take)
  const program = new Command('terramirror').exitOverride().configureOutput({
    writeErr: (text) => {
      stderr += text
    },
  })
  addClientConfig(program)
  try {
    await program.parseAsync(['client-config', ...args], { from: 'user' })
    return { code: 0, stdout, stderr }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return { code: error.exitCode === 0 ? 0 : 2, stdout, stderr }
  } finally {
    vi.restoreAllMocks()
  }
}

describe('terramirror client-config', () => {
  test.each([
    { args: [], url: 'https://localhost:8443/providers/' },
    { args: ['--set', 'listen.port=9443'], url: 'https://localhost:9443/providers/' },
    { args: ['--set', 'publicUrl=https://mirror.example/x'], url: 'https://mirror.example/x/providers/' },
    { args: ['--base-url', 'https://other.example/behind'], url: 'https://other.example/behind/providers/' },
    { args: ['--base-url', 'https://user:pass@m.example'], url: 'https://user:pass@m.example/providers/' },
  ])('$args: prints a configuration for $url, and nothing else', async ({ args, url }) => {
    expect(await run(...args)).toEqual({
      code: 0,
      stdout: `provider_installation {\n  network_mirror {\n    url = "${url}"\n  }\n}\n`,
      stderr: '',
    })
  })

  test('takes the client, the door, direct, and the origins of the configuration', async () => {
    const origins = ['--set', 'origins={registry.acme.example: {}, registry.opentofu.org: {}}']
    const { stdout } = await run('--for', 'tofu', '--door', 'both', '--direct', ...origins)
    for (const piece of ['trust_all_hashes', 'direct {', 'host "registry.acme.example" {']) {
      expect(stdout).toContain(piece)
    }
    expect(stdout).not.toContain('registry.terraform.io')
  })

  test.each([
    [['--for', 'pulumi'], 'Allowed choices are terraform, tofu'],
    [['--door', 'window'], 'Allowed choices are mirror, host, both'],
    [['--dirct'], 'Did you mean --direct'],
    [['--base-url', 'mirror.example'], 'expected an absolute URL'],
    [['--base-url', 'ftp://mirror.example/'], 'expected an absolute URL'],
    [['--base-url', 'http://mirror.example/'], 'refuse a network mirror over plain http'],
    [['--base-url', 'https://mirror.example/?a=b'], 'query or a fragment'],
    [['--base-url', 'https://a"b/'], 'its host is no name or address'],
    [['--base-url', 'https://a$b/'], 'its host is no name or address'],
    [['--door', 'host', '--direct'], '--direct belongs to the network mirror; use it with --door mirror or both'],
    [['--base-url', 'https://mirror.example/providers/'], 'ends with providers/'],
    [['--door', 'host', '--base-url', 'https://u:secret@m.example/'], 'refuse a user and password in host blocks'],
    [['--set', 'listen.tls=off'], 'give --base-url, or set publicUrl'],
  ])('%j is wrong use: exit code 2, nothing on stdout, and the reason without any password', async (args, reason) => {
    const { code, stdout, stderr } = await run(...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(reason)
    expect(stderr).not.toContain('secret')
  })

  test('host blocks work over plain http', async () => {
    const { code, stdout } = await run('--door', 'host', '--base-url', 'http://mirror.example/')
    expect([code, stdout]).toEqual([0, expect.stringContaining('"http://mirror.example/v1/providers/')])
  })

  test('--help has examples', async () => {
    const { code, stdout } = await run('--help')
    expect(code).toBe(0)
    expect(stdout).toContain('terramirror client-config --for tofu --direct')
  })
})
