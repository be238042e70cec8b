import { isMirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { ModuleId, PackageId } from '../stock/item-name.ts'
import type { LockedHashes } from './lock-comparison.ts'
import { type Refusal, refusalOf } from './outcomes.ts'

/** An archive of a provider, with the locks that it must agree with. */
export interface WarmPackage {
  readonly name: string
  readonly id: PackageId
  readonly locks: readonly LockedHashes[]
}

/** What is done with the things that a request asks for: a job fetches them, a dry run only looks. */
export interface WarmWork {
  /** Ends everything. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Does `work` for each item, a few at a time. @throws what `work` throws; the reason of the signal */
  each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void>
  /** Something of the request cannot come. */
  refuse(item: string, refusal: Refusal): void
  /** A module version is wanted. Its record, if it is held then: what it calls is wanted too. */
  module(id: ModuleId): Promise<ModuleRecord | undefined>
  /** These packages are wanted, each once, and no others will be. */
  packages(packages: readonly WarmPackage[]): Promise<void>
}

/** The result of `action`; if it fails, `item` is refused for that reason. @throws the reason of the signal of the work */
export async function orRefuse<T>(work: WarmWork, item: string, action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action()
  } catch (error) {
    work.signal.throwIfAborted()
    if (!isMirrorError(error)) work.log.error({ item, err: error }, 'an item could not be warmed')
    work.refuse(item, refusalOf(error))
    return undefined
  }
}
