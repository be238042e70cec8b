/** How a command ends: 0 done, 1 it or some items failed, 2 wrong use, 130 interrupted. */
export type ExitCode = 0 | 1 | 2 | 130

/** Why a command ends without having done its work. The message is for people and says all; `exitCode` is default 1. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError'
  readonly exitCode: ExitCode

  constructor(message: string, { exitCode = 1, cause }: { exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.exitCode = exitCode
  }
}

/** The error for a command line that cannot be meant so. */
export function wrongUse(message: string): CommandError {
  return new CommandError(message, { exitCode: 2 })
}
