import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { beforeAll, describe, expect, test } from 'vitest'
import { addOperatorCommands } from '../../src/cli/operator-commands.ts'
import { runCommand } from './run-command.ts'

const COMMANDS = ['warm', 'list', 'show', 'purge', 'refresh', 'pin', 'verify', 'explain', 'jobs', 'stats', 'origins']

const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8')

/** The commands of ours in a text, one for each line that begins with one. */
function examplesIn(text: string): string[] {
  return [...text.matchAll(/^ *(terramirror (?:.*\\\n)*.*)$/gm)].map(([, line = '']) => line.replaceAll('\\\n', ' '))
}

/** Words as a shell splits them: quotes, and nothing behind a pipe or a redirection. */
function wordsOf(line: string): string[] {
  const [command = ''] = line.split(/ [|>] /)
  const words = command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)
  return [...words].map(([, single, double, plain]) => single ?? double ?? plain ?? '')
}

/** The words of an example without what explains it: two spaces and more, then text. */
const exampleWords = (line: string) => wordsOf(line.replace(/(\S) {2,}\S.*$/, '$1'))

/** Parses a command line without doing anything; the name of the command that it means. */
async function parse(words: readonly string[]): Promise<string> {
  let ran = ''
  const program = new Command('terramirror').exitOverride().configureOutput({ writeErr: () => undefined })
  await addOperatorCommands(program, words)
  const disarm = (command: Command): void => {
    for (const child of command.commands) {
      child.action(() => {
        ran = child.name()
      })
      disarm(child)
    }
  }
  disarm(program)
  try {
    await program.parseAsync(words.slice(1), { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    throw new Error(`${words.join(' ')}: ${error.message}`)
  }
  return ran
}

describe('--help', () => {
  const pages = [
    ...COMMANDS.map((name) => [name]),
    ...['set', 'show', 'list', 'delete'].map((name) => ['pin', name]),
    ...['list', 'show', 'watch', 'cancel'].map((name) => ['jobs', name]),
  ]

  test.each(pages.filter(([name, sub]) => sub !== undefined || !['pin', 'jobs'].includes(name ?? '')))(
    'of %s %s has examples, which are right, and the exit codes',
    async (...words) => {
      const { code, stdout } = await runCommand([...words.filter(Boolean), '--help'])
      expect(code).toBe(0)
      expect(stdout).toContain('Exit codes:')
      const examples = examplesIn(stdout)
      expect(examples.length).toBeGreaterThan(0)
      for (const line of examples) expect(await parse(exampleWords(line))).not.toBe('')
    },
  )
})

describe('docs/commands.md', () => {
  let examples: string[]
  beforeAll(() => {
    examples = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = '']) => examplesIn(block))
  })

  test('has a section for each command', () => {
    const sections = [...page.matchAll(/^## `terramirror (\w+)/gm)].map(([, name]) => name)
    expect(sections).toEqual(COMMANDS)
  })

  test('has no command line that does not parse', async () => {
    expect(examples.length).toBeGreaterThan(25)
    const seen = new Set<string>()
    for (const line of examples) seen.add(await parse(wordsOf(line.replace(/ +#.*$/, ''))))
    expect(seen).not.toContain('')
  })

  test('names every option', async () => {
    for (const name of COMMANDS) {
      const { stdout } = await runCommand([name, '--help'])
      const options = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, option = '']) => option)
      for (const option of options.filter((option) => option !== '--help')) expect(page).toContain(`\`${option}`)
    }
  })
})
