import { MirrorError } from '../errors.ts'

/** The most text of one file that is read: files of people have some hundred kilobytes at most. */
export const MAX_FILE_LENGTH = 1_048_576

/**
 * What is wrong with a file, at which line (from 1), if one can be named. `reason` begins with the summary that
 * Terraform has for it.
 */
export class FileFault extends Error {
  readonly line: number | undefined

  constructor(reason: string, line?: number) {
    super(reason)
    this.line = line
  }
}

/** The fault as an error of ours, with the name of the file. */
export function fileInvalid(file: string, fault: FileFault): MirrorError<'CONFIGURATION_FILE_INVALID'> {
  const { line, message: reason } = fault
  const place = line === undefined ? file : `${file}:${line}`
  return new MirrorError('CONFIGURATION_FILE_INVALID', `${place}: ${reason}`, {
    file,
    reason,
    ...(line === undefined ? {} : { line }),
  })
}
