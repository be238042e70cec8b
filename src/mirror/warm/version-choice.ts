import { MirrorError } from '../../errors.ts'
import { formatModuleAddress, type ModuleAddress } from '../../protocol/module-address.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import { ANY_VERSION, newestMatching } from '../../protocol/version-constraint.ts'
import type { Mirror } from '../mirror.ts'
import type { Modules } from '../modules.ts'
import { notCached } from '../origin-lists.ts'
import type { View } from '../view.ts'
import { originCall } from './origin-call.ts'
import { LATEST, type WantedVersion } from './wanted-version.ts'

/** What `VersionChoice` is made of. */
export interface VersionChoiceParts {
  readonly mirror: Pick<Mirror, 'listVersions'>
  readonly modules: Pick<Modules, 'listVersions'>
  readonly view: View
  /** Nothing is asked of any origin: what is not held cannot come. */
  readonly sealed: boolean
}

/** Chooses versions as a client would that asked this mirror for its lists. */
export class VersionChoice {
  readonly #parts: VersionChoiceParts

  constructor(parts: VersionChoiceParts) {
    this.#parts = parts
  }

  /**
   * The version of a provider that Terraform would choose.
   * @throws MirrorError `VERSION_NOT_FOUND`, with the newest that there is; `NOT_CACHED` if sealed; as `Mirror.listVersions`
   */
  async provider(address: ProviderAddress, wanted: WantedVersion, signal: AbortSignal): Promise<Version> {
    const { mirror, view } = this.#parts
    const { value } = await mirror.listVersions(view, address, originCall(signal))
    return this.#newest(formatProviderAddress(address), value, wanted)
  }

  /** The same of a module. @throws MirrorError likewise; as `Modules.listVersions` */
  async module(address: ModuleAddress, wanted: WantedVersion, signal: AbortSignal): Promise<Version> {
    const { modules, view } = this.#parts
    const { value } = await modules.listVersions(view, address, originCall(signal))
    return this.#newest(formatModuleAddress(address), value, wanted)
  }

  #newest(name: string, versions: readonly Version[], wanted: WantedVersion): Version {
    const chosen = newestMatching(versions, wanted.constraint)
    if (chosen !== undefined) return chosen
    // Whether there is one, only the origin could say.
    if (this.#parts.sealed) throw notCached(`${name} ${wanted.text}`)
    const newest = newestMatching(versions, ANY_VERSION) ?? versions.at(-1)
    const wish = wanted.text === LATEST.text ? 'that is no pre-release' : `that matches ${wanted.text}`
    const message = `${name} has no version ${wish}${newest === undefined ? '' : `; the newest is ${newest}`}`
    throw new MirrorError('VERSION_NOT_FOUND', message, { address: name, version: wanted.text })
  }
}
