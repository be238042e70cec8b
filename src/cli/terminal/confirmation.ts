import { createInterface } from 'node:readline/promises'
import { wrongUse } from '../command-error.ts'
import { printable } from './printable.ts'

/** @throws CommandError wrong use, where there is no terminal to ask on */
export function assertCanAsk(): void {
  if (process.stdin.isTTY && process.stderr.isTTY) return
  throw wrongUse('there is no terminal to ask on whether this is meant; say --yes')
}

/** Asks a question on the terminal; only `y` and `yes` are a yes. */
export async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // Ctrl-D and Ctrl-C are no yes: the question then never gets its answer.
    const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
    const answer = await Promise.race([terminal.question(`${printable(question)} [y/N] `), closed])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}
