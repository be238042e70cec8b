import { spawn } from 'node:child_process'
import { access, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { startOrigin } from '../origin/origin.ts'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'
import { spawnMirror, startMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, requestsSeen, requireWidget } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, createWorkspace, networkMirrorConfig, terraformAvailable } from './terraform-cli.ts'
import { startTlsFront } from './tls-front.ts'

const WIDGET = `${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`

describe.skipIf(terraformAvailable() === undefined)('how terraform comes to trust the mirror (B57, B58)', () => {
  test('what serve prints works as pasted into a shell that has nothing but PATH', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await spawnMirror({ origin })
    await using terraform = await createWorkspace({ providers: requireWidget(), cliConfig: '' })

    const snippet = snippetOf(mirror.stdout)
    expect(snippet).toContain('export TF_CLI_CONFIG_FILE=')
    expect(snippet).toContain('export SSL_CERT_FILE=')
    const run = await paste(snippet, terraform.dir)
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain('Terraform has been successfully initialized')
    expect(await terraform.installed()).toEqual([WIDGET])
  })

  test('it works as pasted from a data folder with blanks and quotes in its name', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using parent = await mkdtempDisposable(join(tmpdir(), 'test-mirror-'))
    await using mirror = await spawnMirror({ origin, folder: join(parent.path, "it's $HOME `here`") })
    await using terraform = await createWorkspace({ providers: requireWidget(), cliConfig: '' })

    const run = await paste(snippetOf(mirror.stdout), terraform.dir)
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([WIDGET])
  })

  test('a client that does not trust the authority of the mirror installs nothing', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using terraform = await createWorkspace({
      providers: requireWidget(),
      cliConfig: networkMirrorConfig(mirror.baseUrl),
      caPem: origin.caPem,
    })
    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toContain('certificate signed by unknown authority')
    expect(requestsSeen(mirror)).toEqual([])
  })

  test('a client that trusts the mirror trusts it on after a restart', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    const { caPem } = mirror
    await mirror.restart()
    await using terraform = await createWorkspace({
      providers: requireWidget(),
      cliConfig: networkMirrorConfig(mirror.baseUrl),
      caPem,
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
  })

  test.each(['/some/prefix', '/t/0123-token~x/a%20b'])(
    'behind a TLS front and the path prefix %s init works, and no URL leads out of the prefix',
    async (prefix) => {
      await using origin = await startOrigin()
      for (const version of ['1.0.0', '1.0.1+build.7']) await origin.publish({ provider: 'acme/widget', version })
      await using mirror = await startMirror({ origin, config: { listen: { port: 0, tls: 'off' } } })
      await using front = await startTlsFront({ prefix, target: mirror.url.replace('localhost', '127.0.0.1') })

      for (const version of ['1.0.0', '1.0.1+build.7']) {
        await using terraform = await createMirrorWorkspace(mirror, {
          version,
          cliConfig: networkMirrorConfig(`${front.url}providers/`),
          caPem: front.caPem,
        })
        const run = await terraform.run(['init'])
        expect(run.code, run.output).toBe(0)
        expect(await terraform.installed()).toEqual([`${HOST}/acme/widget/${version}/${CURRENT_PLATFORM}`])
      }
      expect(front.strays).toEqual([])
    },
  )

  test("the operator's own certificate is served, and its replacement without a restart", async () => {
    const before = await createTestAuthority()
    const after = await createTestAuthority()
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using folder = await mkdtempDisposable(join(tmpdir(), 'test-mirror-'))
    await writeCertificate(folder.path, before)
    await using mirror = await startMirror({
      origin,
      folder: folder.path,
      caPem: before.caPem,
      config: { listen: { port: 0, tls: { certFile: './server.pem', keyFile: './server-key.pem' } } },
    })
    const initTrusting = async ({ caPem }: TestAuthority) => {
      const cliConfig = networkMirrorConfig(mirror.baseUrl)
      await using terraform = await createWorkspace({ providers: requireWidget(), cliConfig, caPem })
      return await terraform.run(['init'])
    }

    expect(await initTrusting(before)).toMatchObject({ code: 0 })
    expect(await initTrusting(after)).toMatchObject({ code: 1 })
    const { port } = new URL(mirror.url)
    const served = await fingerprintServed(Number(port))
    await writeCertificate(folder.path, after)
    await expect.poll(() => fingerprintServed(Number(port)), { timeout: 15_000, interval: 100 }).not.toBe(served)

    expect(await initTrusting(after)).toMatchObject({ code: 0 })
    expect(await initTrusting(before)).toMatchObject({ code: 1 })
    // It has no authority of its own to make then.
    await expect(access(join(mirror.dataDir, 'state', 'tls', 'ca.pem'))).rejects.toThrow('ENOENT')
  })
})

/** The lines for a shell in the notice of `serve`. */
function snippetOf(notice: string): string {
  const [, snippet] = /paste this into a shell.*:\n\n(.*?)\n\n/s.exec(notice) ?? []
  if (snippet === undefined) throw new Error(`no lines for a shell in: ${notice}`)
  return snippet
}

async function paste(snippet: string, cwd: string): Promise<{ code: number; output: string }> {
  // Without CHECKPOINT_DISABLE the CLI asks the Internet for its newest version.
  const env = { PATH: process.env.PATH, CHECKPOINT_DISABLE: '1' }
  const child = spawn('bash', ['-e', '-c', snippet], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
  const code = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  const output = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await code, output: output.join('') }
}

async function writeCertificate(folder: string, authority: TestAuthority): Promise<void> {
  const { cert, key } = await authority.issue(['localhost', '127.0.0.1'])
  await writeFile(join(folder, 'server.pem'), cert)
  await writeFile(join(folder, 'server-key.pem'), key)
}

function fingerprintServed(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}
