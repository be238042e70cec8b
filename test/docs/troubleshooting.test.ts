import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { silentLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'
import { terraformAvailable } from '../e2e/terraform-cli.ts'
import { gitHttpBackend } from '../origin/git-host.ts'
import { makeTempFolder } from '../store/temp-folder.ts'
import { openStage, type Stage } from './trouble-stage.ts'
import { makeTrouble, TROUBLES } from './troubles.ts'

/** A quotation in the page: what the client printed, or the mirror logged, in one trouble. */
interface Quotation {
  readonly kind: 'run' | 'log'
  readonly trouble: string
  readonly text: string
}

const page = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8')
const quotations = [...page.matchAll(/^<!-- (run|log): ([\w-]+) -->\n```(?:text|log)\n(.*?)\n```$/gms)].map(
  ([, kind, trouble = '', text = '']): Quotation => ({ kind: kind === 'run' ? 'run' : 'log', trouble, text }),
)
const printed = quotations.filter(({ kind }) => kind === 'run')
const logged = quotations.filter(({ kind }) => kind === 'log')

test('every quotation of the page is produced, and every trouble that is made is quoted', () => {
  expect(page.match(/^```(text|log)$/gm)).toHaveLength(quotations.length)
  expect(new Set(quotations.map(({ trouble }) => trouble))).toEqual(new Set(Object.keys(TROUBLES)))
})

const ready = [terraformAvailable(), gitHttpBackend()].every((program) => program !== undefined)

describe.skipIf(!ready)('the texts of docs/troubleshooting.md', () => {
  let stage: Stage
  const output = new Map<string, string>()

  beforeAll(async () => {
    stage = await openStage()
    // Most of the time clients wait between two attempts; so four of them at a time.
    const waiting = Object.keys(TROUBLES)
    const work = async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        output.set(name, await makeTrouble(stage, name))
      }
    }
    await Promise.all([work(), work(), work(), work()])
  }, 180_000)
  afterAll(() => stage?.[Symbol.asyncDispose]())

  test.each(printed)('terraform prints the text of $trouble', ({ trouble, text }) => {
    expect(flatten(output.get(trouble) ?? '')).toMatch(patternOf(text))
  })

  test.each(logged)('the mirror logs the line of $trouble', async ({ text }) => {
    // A line is written after its answer.
    const lines = () => stage.log().split('\n').map(flatten)
    await expect.poll(lines).toContainEqual(expect.stringMatching(patternOf(text)))
  })
})

describe('the lines of a mirror that does not start', () => {
  const [, table = ''] = page.split('## The mirror does not start')
  const rows = [...table.matchAll(/^\| `(.+?)` \|/gm)].map(([, line = '']) => line)
  const lines: string[] = []

  beforeAll(async () => {
    await using folder = await makeTempFolder()
    const start = async (yaml: string): Promise<AsyncDisposable> => {
      await writeFile(join(folder.path, 'config.yaml'), yaml)
      const config = await loadConfig({ set: [], cwd: folder.path, env: {} })
      const server = await startServer({ config, log: silentLog(), version: '0.0.0-test' })
      return { [Symbol.asyncDispose]: () => server.close(0) }
    }
    const note = (error: unknown) => void lines.push(...String((error as Error).message).split('\n'))
    const origin = `origins:\n  registry.acme.example:\n    token: \${env:ACME_TOKEN}\n`
    await start(`listen:\n  prt: 1\nauth: {}\n`).catch(note)
    await start(`mode: sealed\n\n\n\n${origin}`).catch(note)
    await using busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    await start(`admin: off\nlisten:\n  tls: off\n  port: ${(busy.address() as AddressInfo).port}\n`).catch(note)
    await using _ = await start('listen:\n  tls: off\n  port: 0\n')
    await start('listen:\n  tls: off\n  port: 0\n').catch(note)
  })

  test.each(rows)('%s', (row) => {
    expect(lines).toContainEqual(expect.stringMatching(patternOf(row)))
  })
})

/** The frame around diagnostics and all line breaks taken out. */
function flatten(text: string): string {
  return text.replaceAll(/[│╷╵]/g, ' ').replaceAll(/\s+/g, ' ')
}

/** `…` stands for anything on the way; the rest is meant word for word. */
function patternOf(text: string): RegExp {
  const parts = flatten(text)
    .trim()
    .split('…')
    .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(parts.join('.{0,600}?'))
}
