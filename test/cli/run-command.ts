import { Command, CommanderError } from 'commander'
import { vi } from 'vitest'
import { addClientConfig } from '../../src/cli/client-config.ts'
import { CommandError } from '../../src/cli/command-error.ts'
import { addDoctor } from '../../src/cli/doctor.ts'
import { addOperatorCommands } from '../../src/cli/operator-commands.ts'
import { isMirrorError } from '../../src/errors.ts'

/** How a command ended. */
export interface CommandRun {
  /** As the process would exit. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command as `main.ts` does, in this process; `env` is added to the environment, undefined ones taken out. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<CommandRun> {
  let stdout = ''
  let stderr = ''
  const take = (add: (text: string) => void) =>
    ((text: string, done?: (error?: Error) => void) => {
      add(String(text))
      done?.()
      return true
    }) as typeof process.stdout.write
  vi.stubEnv('TERRAMIRROR_ADMIN_TOKEN', undefined)
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  vi.spyOn(process.stdout, 'write').mockImplementation(
    take((text) => {
      stdout += text
    }),
  )
  vi.spyOn(process.stderr, 'write').mockImplementation(
    take((text) => {
      stderr += text
    }),
  )
  try {
    const program = new Command('terramirror').version('0.0.0-test').exitOverride()
    addClientConfig(program)
    addDoctor(program)
    await addOperatorCommands(program, args)
    process.exitCode = 0
    await program.parseAsync(args, { from: 'user' })
    return { code: Number(process.exitCode), stdout, stderr }
  } catch (error) {
    if (error instanceof CommanderError) return { code: error.exitCode === 0 ? 0 : 2, stdout, stderr }
    if (error instanceof CommandError) return { code: error.exitCode, stdout, stderr: stderr + error.message }
    if (isMirrorError(error)) return { code: 1, stdout, stderr: stderr + error.message }
    throw error
  } finally {
    process.exitCode = undefined
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  }
}
