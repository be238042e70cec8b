import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { PROCESS_ENV, startMirror } from '../e2e/mirror-fixture.ts'
import { terraformAvailable } from '../e2e/terraform-cli.ts'
import { gitHttpBackend } from './git-host.ts'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))

test.skipIf(terraformAvailable() === undefined)(
  'npm run origin: what it prints installs a provider and its modules through a mirror',
  async () => {
    const program = spawn(process.execPath, [MAIN], { stdio: ['ignore', 'pipe', 'inherit'], env: PROCESS_ENV })
    const ended = once(program, 'close')
    let printed = ''
    for await (const line of createInterface({ input: program.stdout })) {
      printed += `${line}\n`
      if (line.endsWith('Requests:')) break
    }
    program.stdout.resume()
    try {
      const [, config = ''] = /^cat > test-origin\.yaml <<'END'\n(.*?)^END$/ms.exec(printed) ?? []
      const [, steps = ''] = /^2\. Install.*?\n\n(.*?)\n\nStraight/ms.exec(printed) ?? []
      const [[host, { address, caFile }]] = Object.entries(parse(config).origins) as [[string, Record<string, string>]]
      const caPem = await readFile(caFile ?? '', 'utf8')
      await using mirror = await startMirror({ origin: { hosts: [host], address: address ?? '', caPem } })
      const output = await runInShell(steps.replaceAll('https://localhost:8443/', mirror.url), mirror.folder)
      expect(output).toContain('Terraform has been successfully initialized!')
      expect(output).toContain(`Installed ${host}/acme/widget v1.1.0 (verified checksum)`)
      expect(output).toContain('- net in .terraform/modules/net')
      if (gitHttpBackend() !== undefined) expect(output).toContain('- dns in .terraform/modules/dns')
      expect(mirror.logLines.filter(({ module }) => module !== undefined)).not.toEqual([])
      program.kill('SIGINT')
      expect([await ended, existsSync(join(caFile ?? '', '..'))]).toEqual([[0, null], false])
    } finally {
      program.kill()
      await ended
    }
  },
)

/** Everything that it prints. */
async function runInShell(script: string, cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: cwd, CHECKPOINT_DISABLE: '1', TF_CLI_ARGS_init: '-no-color' }
  const shell = spawn('bash', ['-e'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  shell.stdin.end(script)
  const [out, errors] = await Promise.all([text(shell.stdout), text(shell.stderr)])
  return out + errors
}
