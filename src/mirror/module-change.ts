import { MirrorError } from '../errors.ts'
import { formatModuleAddress } from '../protocol/module-address.ts'
import type { ModuleRevision } from '../upstream/module-upstream.ts'
import type { ModuleState } from './module-record.ts'
import { formatModuleName, type ModuleId } from './stock/item-name.ts'

/** Files that came, before they are kept. */
export interface Offered {
  readonly tarDigest: string
  /** Of the archive that clients would get. */
  readonly digest: string
  readonly revision: ModuleRevision
}

/** Throws if what came must not be kept. */
export type Judge = (offered: Offered) => void

/** For a branch, whose files may change. */
export function acceptAll(): void {}

/** First copy wins, also after its bytes were lost; only a branch may bring others. */
export function isChanged(held: ModuleState, offered: Offered): boolean {
  return held.tarDigest !== offered.tarDigest && !(held.revision.kind === 'commit' && held.revision.moving)
}

/** @throws MirrorError `RELEASE_CHANGED` */
export function assertUnchanged(id: ModuleId, held: ModuleState, offered: Offered): void {
  if (!isChanged(held, offered)) return
  throw new MirrorError('RELEASE_CHANGED', `${describeChange(id, held, offered)}; refused`, {
    address: formatModuleAddress(id.address),
    version: id.version,
    filename: held.source,
    held: held.tarDigest,
    offered: offered.tarDigest,
  })
}

/** For an operator, who may accept it. */
export function acceptRequired(id: ModuleId, held: ModuleState, offered: Offered): MirrorError<'ACCEPT_REQUIRED'> {
  const message = `${describeChange(id, held, offered)}; what is held stays, unless you accept the change`
  return new MirrorError('ACCEPT_REQUIRED', message, {
    address: formatModuleAddress(id.address),
    version: id.version,
    changes: [{ filename: held.source, held: held.digest, offered: offered.digest }],
  })
}

function describeChange(id: ModuleId, held: ModuleState, offered: Offered): string {
  const [was, is] = [held.revision, offered.revision].map((revision) =>
    revision.kind === 'commit' ? revision.commit : revision.digest,
  )
  return `${formatModuleName(id)} is not what it was: it came from ${was}, and its origin now offers ${is}`
}
