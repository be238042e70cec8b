import type { z } from 'zod'
import { findModuleAddress } from '../../protocol/module-address.ts'
import { parseSha256, type Sha256 } from '../../protocol/package-hash.ts'
import { parsePlatformName } from '../../protocol/platform.ts'
import { findProviderAddress } from '../../protocol/provider-address.ts'
import { parseVersion } from '../../protocol/version.ts'
import type { RecordKey, RecordStore } from '../../store/record-store.ts'
import { ModuleRecord } from '../module-record.ts'
import { ArchiveRecord, HashRecord, PinRecord, Release, TrustRecord } from '../release-record.ts'
import type { FileUse } from './held-files.ts'
import { CallsRecord } from './module-calls.ts'

/** Records by their place; `*` stands for any name. */
const PLACES: readonly (readonly [place: readonly string[], schema: z.ZodType])[] = [
  [['providers', '*', '*', '*', 'trust'], TrustRecord],
  [['providers', '*', '*', '*', 'versions', '*', 'release'], Release],
  [['providers', '*', '*', '*', 'versions', '*', 'pin'], PinRecord],
  [['providers', '*', '*', '*', 'versions', '*', 'archives', '*'], ArchiveRecord],
  [['modules', '*', '*', '*', '*', '*'], ModuleRecord],
  [['hashes', '*'], HashRecord],
  [['calls', '*'], CallsRecord],
]

/** A record that is as good as none. */
export interface RecordTrouble {
  readonly key: RecordKey
  readonly problem: 'unreadable' | 'needless'
  /** What its loss concerns, if it can be asked for again. */
  readonly use?: FileUse['id']
}

/**
 * Looks at every record: those that are not what their place says, and what is computed of archives that nobody holds
 * (`isHeld`).
 * @throws MirrorError `STORAGE_FAILED`
 */
export async function* checkRecords(
  records: RecordStore,
  isHeld: (digest: Sha256) => boolean,
): AsyncIterable<RecordTrouble> {
  for (const [place, schema] of PLACES) {
    for await (const key of matching(records, [], place)) {
      const computedOf = place.length === 2 ? parseSha256(key[1] ?? '') : undefined
      if (place.length === 2 && (computedOf === undefined || !isHeld(computedOf))) {
        yield { key, problem: 'needless' }
        continue
      }
      if (schema.safeParse(await records.get(key)).success) continue
      const use = useOf(key)
      yield { key, problem: 'unreadable', ...(use === undefined ? {} : { use }) }
    }
  }
}

function useOf([kind, hostname = '', namespace = '', name = '', ...rest]: RecordKey): FileUse['id'] | undefined {
  if (kind === 'modules') {
    const [targetSystem = '', versionName = ''] = rest
    const address = findModuleAddress({ hostname, namespace, name, targetSystem })
    const version = parseVersion(versionName)
    return address && version && { kind: 'module', address, version }
  }
  const [, versionName = '', , platformName] = rest
  const address = findProviderAddress({ hostname, namespace, type: name })
  const version = parseVersion(versionName)
  if (kind !== 'providers' || address === undefined || version === undefined) return undefined
  const platform = platformName === undefined ? undefined : parsePlatformName(platformName)
  return platform === undefined ? { address, version } : { kind: 'package', address, version, platform }
}

async function* matching(
  records: RecordStore,
  prefix: RecordKey,
  [first, ...rest]: readonly string[],
): AsyncIterable<RecordKey> {
  if (first === undefined) {
    yield prefix
    return
  }
  const names = await records.children(prefix)
  for (const name of first === '*' ? names : names.filter((each) => each === first)) {
    yield* matching(records, [...prefix, name], rest)
  }
}
