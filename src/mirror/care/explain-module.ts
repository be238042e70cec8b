import type { BlobStore } from '../../store/blob-store.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { Modules } from '../modules.ts'
import type { ModuleId } from '../stock/item-name.ts'
import { ago, type Finding, findingOf, howMended, notHeld } from './finding.ts'

/** What a module is explained from. */
export interface ExplainModuleParts {
  readonly isSealed: boolean
  readonly moduleCatalogue: ModuleCatalogue
  readonly modules: Pick<Modules, 'remembered'>
  readonly blobs: Pick<BlobStore, 'stat'>
  readonly now: () => number
}

/** What is known of one version of a module. @throws MirrorError `STORAGE_FAILED` */
export async function explainModuleVersion(
  id: ModuleId,
  { isSealed, moduleCatalogue, modules, blobs, now }: ExplainModuleParts,
): Promise<{ record: ModuleRecord | undefined; findings: Finding[] }> {
  const record = await moduleCatalogue.read(id.address, id.version)
  const findings: Finding[] = []
  if (record === undefined) {
    findings.push(notHeld('archive', isSealed))
  } else {
    const { state } = record
    const { revision, source, digest, cachedAt } = state
    const from = revision.kind === 'commit' ? `commit ${revision.commit}` : `an archive with SHA-256 ${revision.digest}`
    findings.push({ about: 'release', verdict: 'ok', text: `It came from ${source}, ${from}.`, at: cachedAt })
    const stat = await blobs.stat(digest)
    findings.push(
      stat?.size === state.size
        ? { about: 'archive', verdict: 'ok', text: `Held since ${cachedAt}, ${state.size} bytes.`, at: cachedAt }
        : {
            about: 'archive',
            verdict: 'damaged',
            text: `Its file ${digest} is gone: ${howMended(isSealed)}.`,
          },
    )
  }
  const { checkedAt, failure, movedTag } = modules.remembered(id)
  if (movedTag !== undefined) {
    const text =
      `The tag names commit ${movedTag.offered} at its origin by now. What is held stays; ` +
      'only a refresh with `accept` replaces it.'
    findings.push({ about: 'origin', verdict: 'changed', text, at: new Date(movedTag.at).toISOString() })
  } else if (checkedAt !== undefined && failure === undefined) {
    const text = `Its source was asked ${ago(checkedAt, now())}.`
    findings.push({ about: 'origin', verdict: 'ok', text, at: new Date(checkedAt).toISOString() })
  }
  if (failure !== undefined) findings.push(findingOf('origin', failure.error, failure.at))
  return { record, findings }
}
