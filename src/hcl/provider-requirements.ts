import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { isBuiltin } from './provider-source.ts'

/** A provider that a module needs, by its own word or by what it uses. */
export interface ProviderRequirement {
  readonly source: ProviderAddress
  /** All that the folder says of its version, one after the other; `parseVersionConstraint` takes it. */
  readonly constraint: string | undefined
  /** Where it is named first. */
  readonly file: string
  readonly line: number
}

/** One requirement for each provider, whatever the module calls it, with all that is said of its version. */
export class ProviderRequirements {
  readonly #found = new Map<string, { requirement: ProviderRequirement; constraints: Set<string> }>()

  /** `constraint` is what one place says of the version. */
  add(source: ProviderAddress, constraint: string | undefined, { file, line }: { file: string; line: number }): void {
    if (isBuiltin(source)) return
    const key = formatProviderAddress(source)
    const found = this.#found.get(key) ?? {
      requirement: { source, constraint: undefined, file, line },
      constraints: new Set<string>(),
    }
    if (constraint !== undefined) found.constraints.add(constraint)
    this.#found.set(key, found)
  }

  /** In the order in which they were named first. */
  list(): ProviderRequirement[] {
    return [...this.#found.values()].map(({ requirement, constraints }) => ({
      ...requirement,
      constraint: constraints.size === 0 ? undefined : [...constraints].join(', '),
    }))
  }
}
