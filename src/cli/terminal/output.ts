import { CommandError } from '../command-error.ts'
import { printable } from './printable.ts'

/**
 * Writes text to standard output and waits until it is taken. A reader that has gone (`| head`) ends the command well.
 * @throws CommandError with exit code 0 then, with 1 if it cannot be written for another reason
 */
export function print(text: string): Promise<void> {
  return printRaw(printable(text))
}

/** Writes a value to standard output as JSON for programs, one line. Waits and throws as {@link print}. */
export function printJson(value: unknown): Promise<void> {
  return printRaw(`${JSON.stringify(value)}\n`)
}

/** Tells people something beside the output, on standard error; each line begins with the program's name. */
export function note(text: string): void {
  const lines = printable(text).split('\n')
  process.stderr.write(lines.map((line) => `terramirror: ${line}\n`).join(''))
}

/** Writes text that is safe to show as it is. Waits and throws as {@link print}. */
export function printRaw(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (error === undefined || error === null) return resolve()
      const { code } = error as NodeJS.ErrnoException
      const isGone = code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED'
      const message = isGone ? 'nobody reads the output' : `cannot write the output (${code ?? error.message})`
      reject(new CommandError(message, { exitCode: isGone ? 0 : 1, cause: error }))
    })
  })
}
