import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { wrongUse } from './command-error.ts'

/** For options that may be repeated. */
export function collect(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value]
}

/** The text of a file that an option names; `-` is standard input. @throws CommandError wrong use */
export async function readTextFile(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')
  } catch (error) {
    throw wrongUse(`${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`)
  }
}
