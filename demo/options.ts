import { parseArgs } from 'node:util'

/** What the command line asks for. */
export interface DemoOptions {
  readonly help: boolean
  readonly keep: boolean
  readonly plain: boolean
  /** File for a picture of the output. */
  readonly svg: string | undefined
}

export const HELP = `Usage: npm run demo -- [--keep] [--plain] [--svg FILE]

Starts an origin registry and a mirror on this machine, installs providers through the mirror with terraform (or tofu;
without them it asks the mirror itself), lets the origin falsify a version, ends the origin, and installs again.
Takes some seconds, uses free ports, and touches nothing outside a temporary folder.

  --keep      keep that folder (configurations and what the mirror holds), and say where it is
  --plain     no colours and no pictures
  --svg FILE  also draw the output into FILE
  --help      this text

Exit code: 0 all held; 1 something did not, or the demo failed; 2 wrong use; 130 interrupted.
`

/** Reads the command line. @throws TypeError that says what is wrong with it */
export function parseOptions(args: readonly string[]): DemoOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      plain: { type: 'boolean', default: false },
      svg: { type: 'string' },
    },
  })
  return { ...values, svg: values.svg }
}
