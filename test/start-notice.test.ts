import { spawnSync } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.ts'
import { type StartedServer, startNotice } from '../src/start-notice.ts'
import { makeTempFolder } from './store/temp-folder.ts'

const server: StartedServer = {
  url: 'https://localhost:8443/',
  caBundleFile: '/data/state/tls/ca-bundle.pem',
  caFile: '/data/state/tls/ca.pem',
  adminUrl: 'https://localhost:8444/',
}

async function notice(set: string[], started: Partial<StartedServer> = {}): Promise<string> {
  const config = await loadConfig({ set, cwd: import.meta.dirname, env: {} })
  return startNotice(config, { ...server, ...started })
}

describe('what is printed at the start', () => {
  it.each(['bash', 'sh'])('works as pasted into %s, also where the folder has blanks and quotes', async (shell) => {
    await using folder = await makeTempFolder()
    const place = join(folder.path, `it's a "$HOME" folder`)
    await mkdir(place)
    const caBundleFile = join(place, 'ca-bundle.pem')
    const text = await notice([], { caBundleFile })
    const pasted = text.slice(text.indexOf('cat >'), text.indexOf('terraform init'))
    const script = `${pasted}\nprintf '%s\\n%s\\n' "$TF_CLI_CONFIG_FILE" "$SSL_CERT_FILE"\n`
    const { stdout, stderr } = spawnSync(shell, ['-eu'], { input: script, cwd: place, encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(stdout.split('\n')).toEqual([join(place, 'terramirror.tfrc'), caBundleFile, ''])
    expect(await readFile(join(place, 'terramirror.tfrc'), 'utf8')).toBe(
      'provider_installation {\n  network_mirror {\n    url = "https://localhost:8443/providers/"\n  }\n}\n',
    )
  })

  it('names the origins that are served and the address', async () => {
    const text = await notice([])
    expect(text).toContain('registry.terraform.io, registry.opentofu.org')
    expect(text).toContain('\nat https://localhost:8443/providers/\n')
    expect(text.endsWith('\n')).toBe(true)
  })

  it('says so where only what is held is served', async () => {
    expect(await notice(['mode=sealed'])).toContain('sealed')
    expect(await notice([])).not.toContain('sealed')
  })

  it('with a certificate of the operator asks nobody to trust ours', async () => {
    const text = await notice([], { caBundleFile: undefined, caFile: undefined })
    expect(text).not.toContain('SSL_CERT_FILE')
    expect(text).not.toContain('undefined')
    expect(text).toContain('network_mirror')
  })

  it('without TLS and without a front prints no configuration that clients would refuse', async () => {
    const started = { url: 'http://localhost:8443/', caBundleFile: undefined, caFile: undefined }
    const text = await notice(['listen.tls=off'], started)
    expect(text).toContain('TLS is off')
    expect(text).not.toContain('network_mirror {')
  })

  it('without TLS behind a front prints the address of the front', async () => {
    const publicUrl = 'https://mirror.example.com/behind/'
    const started = { url: publicUrl, caBundleFile: undefined, caFile: undefined }
    const text = await notice(['listen.tls=off', `publicUrl=${publicUrl}`], started)
    expect(text).toContain('url = "https://mirror.example.com/behind/providers/"')
  })
})
