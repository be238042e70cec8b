import { readFileSync } from 'node:fs'

/** One instruction of a Dockerfile, its continued lines joined and its build arguments filled in. */
export interface Instruction {
  /** Upper case: `RUN`. */
  readonly keyword: string
  /** What follows, without flags. */
  readonly text: string
  /** `--from=build` as `from: build`. */
  readonly flags: Readonly<Record<string, string>>
}

/** What one `FROM` begins. */
export interface Stage {
  readonly name: string | undefined
  readonly base: string
  readonly instructions: readonly Instruction[]
}

/** Reads the part of the Dockerfile language that ours uses. @throws Error for anything else */
export function readDockerfile(file: string, given: Readonly<Record<string, string>> = {}): Stage[] {
  const text = readFileSync(file, 'utf8')
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n/g, ' ')
  const globals = new Map<string, string>()
  const stages: { name: string | undefined; base: string; args: Map<string, string>; instructions: Instruction[] }[] =
    []
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const [, keyword = '', options = '', rest = ''] = /^([A-Z]+)\s+((?:--[a-z-]+=\S+\s+)*)(.*)$/.exec(line) ?? []
    if (keyword === '') throw new Error(`not an instruction: ${line}`)
    const stage = stages.at(-1)
    const args = keyword === 'FROM' || stage === undefined ? globals : stage.args
    const filled = rest
      .trim()
      .replaceAll(/\$\{(\w+)\}/g, (whole, name) => args.get(name) ?? fail(`no argument ${whole}`))
    if (keyword === 'ARG') {
      const [name = '', value = ''] = filled.split('=')
      args.set(name, given[name] ?? value)
    } else if (keyword === 'FROM') {
      const [, base = '', name] = /^(\S+)(?: AS (\S+))?$/.exec(filled) ?? []
      stages.push({ name, base, args: new Map(), instructions: [] })
    } else {
      const flags = Object.fromEntries(
        [...options.matchAll(/--([a-z-]+)=(\S+)/g)].map(([, key, value]) => [key, value]),
      )
      ;(stage ?? fail('an instruction before FROM')).instructions.push({ keyword, text: filled, flags })
    }
  }
  return stages
}

/** The values of `LABEL` and `ENV`. */
export function pairsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g)].map(([, key, quoted, bare]) => [key, quoted ?? bare]),
  )
}

function fail(message: string): never {
  throw new Error(message)
}
