import { isMirrorError } from '../errors.ts'
import type { Hostname } from '../protocol/hostname.ts'
import type { ProviderAddress } from '../protocol/provider-address.ts'
import { parseModuleVersionConstraint, parseVersionConstraint } from '../protocol/version-constraint.ts'
import {
  type CallDeclaration,
  type Declarations,
  type ProviderDeclaration,
  type ProviderUse,
  type RequirementDeclaration,
  readDeclarations,
  type StaticText,
} from './configuration-file.ts'
import { listConfigurationFiles } from './configuration-folder.ts'
import { FileFault } from './file-fault.ts'
import type { HclParser } from './hcl-syntax.ts'
import { parseJsonConfiguration } from './json-syntax.ts'
import { type ProviderRequirement, ProviderRequirements } from './provider-requirements.ts'
import { DEFAULT_REGISTRY, parseProviderSource } from './provider-source.ts'

/** A `module` block. */
export interface ModuleCall {
  readonly name: string
  /** As written. */
  readonly source: string
  /** A constraint that `parseModuleVersionConstraint` takes, as written. */
  readonly version: string | undefined
  readonly file: string
  /** From 1. */
  readonly line: number
}

/** What could not be understood, or what Terraform would refuse. */
export interface ConfigurationProblem {
  readonly file: string
  readonly line: number
  readonly reason: string
}

/** What one folder of configuration files asks for. Nothing is followed. */
export interface ConfigurationFacts {
  readonly providers: readonly ProviderRequirement[]
  readonly modules: readonly ModuleCall[]
  readonly problems: readonly ConfigurationProblem[]
}

/** Which folder to read, and how. */
export interface ConfigurationOptions {
  /** Default the root, `''`. */
  readonly folder?: string
  /** Where providers without a host come from. Default registry.terraform.io. */
  readonly registry?: Hostname
}

/** More than any folder of people has: what is beyond is told as one problem, and answers stay small. */
const MAX_ITEMS = 2_000
const MAX_PROBLEMS = 200

type Placed<T> = T & { readonly file: string }

/**
 * Reads the files of one folder as Terraform merges them. A file with a fault is a problem of its own; the others count.
 */
export function readFacts(
  files: ReadonlyMap<string, string>,
  parser: HclParser,
  { folder = '', registry = DEFAULT_REGISTRY }: ConfigurationOptions = {},
): ConfigurationFacts {
  const configuration = new Folder(registry)
  const { primary, overrides } = listConfigurationFiles(files.keys(), folder)
  for (const file of primary) configuration.add(file, () => parseFile(file, files.get(file) ?? '', parser))
  for (const file of overrides) configuration.override(file, () => parseFile(file, files.get(file) ?? '', parser))
  return configuration.facts()
}

function parseFile(file: string, text: string, parser: HclParser): Declarations {
  return readDeclarations(file.endsWith('.json') ? parseJsonConfiguration(text) : parser.parse(text))
}

class Folder {
  readonly #registry: Hostname
  readonly #requirements = new Map<string, Placed<RequirementDeclaration>[]>()
  readonly #providerBlocks = new Map<string, Placed<ProviderDeclaration>>()
  readonly #uses = new Map<string, Placed<ProviderUse>>()
  readonly #calls = new Map<string, Placed<CallDeclaration>>()
  readonly #problems: ConfigurationProblem[] = []

  constructor(registry: Hostname) {
    this.#registry = registry
  }

  add(file: string, parse: () => Declarations): void {
    const found = this.#read(file, parse)
    if (found === undefined) return
    for (const each of found.requirements) {
      this.#requirements.set(each.name, [...(this.#requirements.get(each.name) ?? []), { ...each, file }])
    }
    for (const each of found.providerBlocks) {
      this.#addOnce(this.#providerBlocks, `${each.name}.${each.alias}`, { ...each, file }, 'provider configuration')
    }
    for (const each of found.uses) this.#addOnce(this.#uses, each.key, { ...each, file }, each.key)
    for (const each of found.calls) this.#addOnce(this.#calls, each.name, { ...each, file }, `module ${each.name}`)
  }

  /** What is set in an override file replaces what was set before, and what it does not set stays. */
  override(file: string, parse: () => Declarations): void {
    const found = this.#read(file, parse)
    if (found === undefined) return
    for (const each of found.requirements) this.#requirements.set(each.name, [{ ...each, file }])
    for (const each of found.providerBlocks) {
      const key = `${each.name}.${each.alias}`
      const base = this.#providerBlocks.get(key)
      this.#providerBlocks.set(key, {
        ...(base ?? each),
        version: each.version ?? base?.version,
        file: base?.file ?? file,
      })
    }
    for (const each of found.uses) if (each.explicit) this.#uses.set(each.key, { ...each, file })
    for (const each of found.calls) {
      const base = this.#calls.get(each.name)
      if (base === undefined) this.#missingBase(file, `module ${each.name}`, each.line)
      else this.#calls.set(each.name, mergeCall(base, each))
    }
  }

  facts(): ConfigurationFacts {
    const providers = new ProviderRequirements()
    const sources = this.#addRequirements(providers)
    const sourceOf = (name: string) => (sources.has(name) ? sources.get(name) : this.#implied(name))
    for (const block of this.#providerBlocks.values()) {
      const source = this.#attempt(block, () => sourceOf(block.name))
      const constraint = source && this.#constraint(block.file, block.version)
      if (source !== undefined) providers.add(source, constraint, block)
    }
    for (const use of this.#uses.values()) {
      const source = this.#attempt(use, () => sourceOf(use.provider))
      if (source !== undefined) providers.add(source, undefined, use)
    }
    const modules = [...this.#calls.values()].flatMap((call) => this.#moduleCall(call))
    return {
      providers: this.#limit(providers.list(), 'providers'),
      modules: this.#limit(modules, 'module calls'),
      problems: this.#problems.slice(0, MAX_PROBLEMS),
    }
  }

  /** The source that each local name stands for; undefined for one that cannot be known. */
  #addRequirements(providers: ProviderRequirements): ReadonlyMap<string, ProviderAddress | undefined> {
    const sources = new Map<string, ProviderAddress | undefined>()
    for (const [name, declarations] of this.#requirements) {
      const explicit = declarations.find(({ source }) => source !== undefined)
      const faulty = declarations.some((each) => each.faulty)
      const first = declarations[0]
      if (first === undefined) continue
      const place = { file: (explicit ?? first).file, line: explicit?.source?.line ?? first.line }
      const source = faulty
        ? undefined
        : this.#attempt(place, () =>
            explicit?.source === undefined
              ? this.#implied(name)
              : parseProviderSource(explicit.source.text, this.#registry),
          )
      sources.set(name, undefined)
      if (source === undefined) continue
      const problems = this.#problems.length
      const constraints = declarations.map(({ file, version }) => this.#constraint(file, version))
      // A version that is not understood must not become "any".
      if (this.#problems.length > problems) continue
      sources.set(name, source)
      for (const constraint of constraints) providers.add(source, constraint, first)
    }
    return sources
  }

  #moduleCall(call: Placed<CallDeclaration>): ModuleCall[] {
    const { name, source, version, file, line, faulty } = call
    if (faulty) return []
    if (source === undefined || source.text.trim() === '') {
      this.#problem(file, line, `Missing required argument: the module ${name} has no source`)
      return []
    }
    const problems = this.#problems.length
    if (version !== undefined) {
      this.#attempt({ file, line: version.line }, () => parseModuleVersionConstraint(version.text))
    }
    if (this.#problems.length > problems) return []
    return [{ name, source: source.text.trim(), version: version?.text, file, line }]
  }

  #constraint(file: string, version: StaticText | undefined): string | undefined {
    if (version === undefined) return undefined
    const known = this.#attempt({ file, line: version.line }, () => parseVersionConstraint(version.text))
    return known && version.text.trim()
  }

  #limit<T extends { readonly file: string; readonly line: number }>(items: T[], what: string): T[] {
    const beyond = items[MAX_ITEMS]
    if (beyond === undefined) return items
    // In front, so that it is not the one that is cut off.
    const reason = `Too large: of ${items.length} ${what}, those after the first ${MAX_ITEMS} are left out`
    this.#problems.unshift({ file: beyond.file, line: beyond.line, reason })
    return items.slice(0, MAX_ITEMS)
  }

  /** `terraform_data` and `terraform_remote_state` are a part of the client. */
  #implied(name: string): ProviderAddress {
    return parseProviderSource(name === 'terraform' ? 'terraform.io/builtin/terraform' : name, this.#registry)
  }

  #read(file: string, parse: () => Declarations): Declarations | undefined {
    try {
      const found = parse()
      for (const { line, message } of found.faults) this.#problem(file, line, message)
      return found
    } catch (error) {
      if (!(error instanceof FileFault)) throw error
      this.#problem(file, error.line, error.message)
      return undefined
    }
  }

  #attempt<T>({ file, line }: { file: string; line: number }, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (!isMirrorError(error)) throw error
      this.#problem(file, line, error.message)
      return undefined
    }
  }

  #addOnce<T extends { readonly line: number }>(
    map: Map<string, Placed<T>>,
    key: string,
    each: Placed<T>,
    what: string,
  ) {
    const earlier = map.get(key)
    if (earlier === undefined) map.set(key, each)
    else this.#problem(each.file, each.line, `Duplicate ${what}: it is at ${earlier.file}:${earlier.line} already`)
  }

  #missingBase(file: string, what: string, line: number): void {
    this.#problem(file, line, `Missing base to override: there is no ${what} in a file that is not an override`)
  }

  #problem(file: string, line: number | undefined, reason: string): void {
    this.#problems.push({ file, line: line ?? 1, reason })
  }
}

function mergeCall(base: Placed<CallDeclaration>, change: CallDeclaration): Placed<CallDeclaration> {
  return {
    ...base,
    source: change.source ?? base.source,
    version: change.version ?? base.version,
    faulty: base.faulty || change.faulty,
  }
}
