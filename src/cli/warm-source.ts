import { wrongUse } from './command-error.ts'

/** A provider or module that is to be warmed, as the API takes it. */
export interface WarmSource {
  readonly source: string
  /** Left out, the newest. */
  readonly version?: string
}

/**
 * Reads `hashicorp/aws`, `hashicorp/aws@5.100.0`, `hashicorp/aws@latest` or `hashicorp/aws@~> 5.0`: behind the `@` stands
 * what Terraform takes as a version.
 * @throws CommandError wrong use; also for what a shell leaves of a constraint without quotes
 */
export function parseWarmSource(text: string): WarmSource {
  const at = text.indexOf('@')
  const source = (at < 0 ? text : text.slice(0, at)).trim()
  const version = at < 0 ? undefined : text.slice(at + 1).trim()
  if (!source.includes('/') || /\s/.test(source)) {
    throw wrongUse(`${JSON.stringify(text)}: expected NAMESPACE/TYPE[@VERSION]; a folder begins with ./ or /`)
  }
  // An unquoted `>` made a file of the rest.
  if (version !== undefined && !/\d|latest$/.test(version)) {
    throw wrongUse(`${JSON.stringify(text)}: the version is missing; put it in quotes: '${source}@~> 5.0'`)
  }
  return version === undefined ? { source } : { source, version }
}

/** Sources in a text, one a line: a provider, or `module` and a module. Empty lines and what follows `#` do not count. */
export function parseWarmList(
  text: string,
  file: string,
): { readonly providers: readonly WarmSource[]; readonly modules: readonly WarmSource[] } {
  const providers: WarmSource[] = []
  const modules: WarmSource[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = line.replace(/(?:^|\s)#.*$/, '').trim()
    if (words === '') continue
    const [, module] = /^module\s+(.*)$/.exec(words) ?? []
    try {
      if (module === undefined) providers.push(parseWarmSource(words))
      else modules.push(parseWarmSource(module))
    } catch (error) {
      throw wrongUse(`${file}:${index + 1}: ${error instanceof Error ? error.message : error}`)
    }
  }
  return { providers, modules }
}
