import { MirrorError } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { parseItemAddress } from '../../protocol/item-address.ts'
import { formatModuleAddress, type ModuleAddress } from '../../protocol/module-address.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import { assertVersion, compareVersions, type Version } from '../../protocol/version.ts'
import type { Call } from '../call.ts'
import type { Catalogue } from '../catalogue.ts'
import { createDeadline } from '../deadline.ts'
import type { Remembered } from '../freshness.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import type { ModuleLists } from '../module-lists.ts'
import { statesOf } from '../module-record.ts'
import type { Modules } from '../modules.ts'
import type { OriginList } from '../origin-lists.ts'
import type { ChangedFile } from '../release-adoption.ts'
import type { Releases } from '../releases.ts'
import type { ItemRemoval } from '../stock/item-removal.ts'
import type { Versions } from '../versions.ts'
import { assertOriginAllowed, type View } from '../view.ts'

/** How long an origin may take for a list; the documents of a release have a limit of their own. */
const LIST_MS = 8_000

/** What to ask anew; without a version, the list of versions. */
export interface RefreshRequest {
  readonly address: string
  readonly version?: string | undefined
}

/** What came of asking anew. */
export interface RefreshResult {
  readonly address: string
  readonly version: Version | null
  /** `replaced`: other bytes took the place of what was held, or of what was known of a version that nobody has installed. */
  readonly outcome: 'unchanged' | 'grown' | 'replaced'
  /** New versions of a list, or new platforms of a version. */
  readonly added: readonly string[]
  readonly changes: readonly { readonly filename: string; readonly held: string; readonly offered: string | null }[]
}

/** What `Refresh` is made of. */
export interface RefreshParts {
  /** Then no origin is asked. */
  readonly isSealed: boolean
  readonly view: View
  readonly defaultHost: Hostname
  readonly catalogue: Catalogue
  readonly versions: Versions
  readonly releases: Releases
  readonly moduleCatalogue: ModuleCatalogue
  readonly moduleLists: ModuleLists
  readonly modules: Modules
  readonly removal: Pick<ItemRemoval, 'removeBlob'>
}

/** Asks origins anew, now: the only way to replace what was released again with other bytes. */
export class Refresh {
  readonly #parts: RefreshParts

  constructor(parts: RefreshParts) {
    this.#parts = parts
  }

  /**
   * Asks about a list, or about every document of one version. Files that changed since they were first installed are
   * taken over only with `accept`; they must be as authentic as ever.
   * @throws MirrorError `ACCEPT_REQUIRED` with both digests of every changed file: then nothing has changed here;
   *   `REQUEST_INVALID` if this mirror is sealed; `INVALID_ADDRESS`, `HOSTILE_INPUT`, `ORIGIN_NOT_ALLOWED`, `*_NOT_FOUND`,
   *   `ITEM_NOT_FOUND` for a module version that is not held, verification codes, `UPSTREAM_*`, `STORAGE_*`
   */
  async refresh(request: RefreshRequest, { accept }: { accept: boolean }): Promise<RefreshResult> {
    const { isSealed, view, defaultHost } = this.#parts
    const item = parseItemAddress(request.address, defaultHost)
    const version = request.version === undefined ? undefined : assertVersion(request.version)
    assertOriginAllowed(view, item.address.hostname)
    if (isSealed) throw sealed()
    if (item.kind === 'provider') {
      return version === undefined
        ? await this.#providerList(item.address)
        : await this.#release(item.address, version, accept)
    }
    return version === undefined
      ? await this.#moduleList(item.address)
      : await this.#module(item.address, version, accept)
  }

  async #providerList(address: ProviderAddress): Promise<RefreshResult> {
    const { versions, catalogue } = this.#parts
    const before = versionsIn(await versions.remembered(address)) ?? (await catalogue.installableVersions(address))
    return listResult(formatProviderAddress(address), before, await versions.renew(address, newCall()))
  }

  async #moduleList(address: ModuleAddress): Promise<RefreshResult> {
    const { moduleLists, moduleCatalogue } = this.#parts
    const before = versionsIn(await moduleLists.remembered(address)) ?? (await moduleCatalogue.heldVersions(address))
    return listResult(formatModuleAddress(address), before, await moduleLists.renew(address, newCall()))
  }

  async #release(address: ProviderAddress, version: Version, accept: boolean): Promise<RefreshResult> {
    const { versions, releases, catalogue } = this.#parts
    await versions.renew(address, newCall())
    const { release: before } = await catalogue.version(address, version)
    const { known, changed, unsaved } = await renewed(releases.renew(address, version, { hops: [], replace: accept }))
    if (unsaved !== undefined) throw unsaved.error
    const changes = changed?.files.map(toChange) ?? []
    if (changed?.adopted === false) throw acceptRequired(formatProviderAddress(address), version, changes)
    const added = Object.keys(known.release.platforms).filter((name) => before?.platforms[name] === undefined)
    return {
      address: formatProviderAddress(address),
      version,
      outcome: changes.length > 0 ? 'replaced' : added.length > 0 ? 'grown' : 'unchanged',
      added: added.sort(),
      changes,
    }
  }

  async #module(address: ModuleAddress, version: Version, accept: boolean): Promise<RefreshResult> {
    const { moduleLists, modules, removal } = this.#parts
    await moduleLists.renew(address, newCall())
    const { before, record } = await modules.renew({ address, version }, { hops: [], replace: accept })
    const kept = new Set(statesOf(record).map(({ digest }) => digest))
    for (const { digest } of statesOf(before)) if (!kept.has(digest)) await removal.removeBlob(digest)
    const changed = record.state.digest !== before.state.digest
    const { source: filename, digest: held } = before.state
    return {
      address: formatModuleAddress(address),
      version,
      outcome: changed ? 'replaced' : 'unchanged',
      added: [],
      changes: changed ? [{ filename, held, offered: record.state.digest }] : [],
    }
  }
}

/** With the record of a release lost, the one file that is found to have changed is all that is known. */
async function renewed(work: ReturnType<Releases['renew']>): ReturnType<Releases['renew']> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof MirrorError) || !error.is('RELEASE_CHANGED')) throw error
    const { address, version, filename, held, offered } = error.fields
    const change = { filename, held, offered: offered === 'not listed' ? null : offered }
    throw acceptRequired(address, version, [change])
  }
}

function toChange({ filename, held, offered }: ChangedFile): RefreshResult['changes'][number] {
  return { filename, held, offered: offered ?? null }
}

function acceptRequired(
  address: string,
  version: string,
  changes: MirrorError<'ACCEPT_REQUIRED'>['fields']['changes'],
): MirrorError<'ACCEPT_REQUIRED'> {
  const [first] = changes
  const more = changes.length > 1 ? `, and ${changes.length - 1} more files` : ''
  const message =
    `${address} ${version} was released anew with other bytes: ${first?.filename} was ${first?.held}, ` +
    `and is now ${first?.offered ?? 'not listed'}${more}; what is held stays, unless you accept the change`
  return new MirrorError('ACCEPT_REQUIRED', message, { address, version, changes })
}

function versionsIn(remembered: Remembered<OriginList<{ readonly version: Version }>>): Version[] | undefined {
  const { found } = remembered
  return found !== undefined && 'value' in found ? found.value.versions.map(({ version }) => version) : undefined
}

function listResult(
  address: string,
  before: readonly Version[],
  now: OriginList<{ readonly version: Version }>,
): RefreshResult {
  const known = new Set(before)
  const added = now.versions.map(({ version }) => version).filter((version) => !known.has(version))
  return {
    address,
    version: null,
    outcome: added.length > 0 ? 'grown' : 'unchanged',
    added: added.sort(compareVersions),
    changes: [],
  }
}

function sealed(): MirrorError<'REQUEST_INVALID'> {
  const problem = 'this mirror is sealed: it asks no origin, so there is nothing to refresh'
  return new MirrorError('REQUEST_INVALID', problem, { problems: [problem] })
}

function newCall(): Call {
  return { deadline: createDeadline(LIST_MS), hops: [] }
}
