import type { Hostname } from '../../protocol/hostname.ts'
import type { ModuleAddress } from '../../protocol/module-address.ts'
import type { ProviderAddress } from '../../protocol/provider-address.ts'
import { assertVersion, type Version } from '../../protocol/version.ts'
import type { ModuleLists } from '../module-lists.ts'
import type { Versions } from '../versions.ts'
import type { View } from '../view.ts'
import { type ExplainedList, explainList } from './explain-list.ts'
import { type ExplainModuleParts, explainModuleVersion } from './explain-module.ts'
import { type ExplainReleaseParts, explainRelease } from './explain-release.ts'
import { counted, type Explanation, type Finding, howMended } from './finding.ts'
import { formatItemAddress, parseItemAddress } from './item-address.ts'

/** What `Explain` is made of. */
export interface ExplainParts extends ExplainReleaseParts, ExplainModuleParts {
  readonly defaultHost: Hostname
  readonly versions: Pick<Versions, 'remembered'>
  readonly moduleLists: Pick<ModuleLists, 'remembered'>
  /** For how long a list is used without asking. Milliseconds. */
  readonly freshForMs: number
}

/** Says why a client sees what it sees, from what is known: no origin is asked. */
export class Explain {
  readonly #parts: ExplainParts

  constructor(parts: ExplainParts) {
    this.#parts = parts
  }

  /**
   * Explains a provider or module, or one version of it. The address is with a host or without.
   * @throws MirrorError `INVALID_ADDRESS`, `HOSTILE_INPUT`, `STORAGE_FAILED`
   */
  async explain(view: View, addressText: string, versionText?: string): Promise<Explanation> {
    const item = parseItemAddress(addressText, this.#parts.defaultHost)
    const version = versionText === undefined ? undefined : assertVersion(versionText)
    const address = formatItemAddress(item)
    const subject = { address, version: version ?? null }
    const { hostname } = item.address
    if (!view.allowsOrigin(hostname)) {
      const summary = `${address} is hidden: this mirror does not serve ${hostname}; its operator can add the host to \`origins\`.`
      return {
        ...subject,
        summary,
        findings: [{ about: 'policy', verdict: 'hidden', text: summary, code: 'ORIGIN_NOT_ALLOWED' }],
      }
    }
    const policy: Finding = {
      about: 'policy',
      verdict: 'ok',
      text: `${hostname} is one of the origins that are served.`,
    }
    const name = version === undefined ? address : `${address} ${version}`
    const { summary, findings } =
      item.kind === 'provider' ? await this.#provider(item.address, version) : await this.#module(item.address, version)
    return { ...subject, summary: `${name} ${summary}.`, findings: [policy, ...this.#sealed(), ...findings] }
  }

  #sealed(): Finding[] {
    if (!this.#parts.isSealed) return []
    const text = 'This mirror is sealed: no origin is asked, and only what is held is listed and served.'
    return [{ about: 'policy', verdict: 'ok', text }]
  }

  async #provider(address: ProviderAddress, version: Version | undefined): Promise<Explained> {
    const { versions, catalogue } = this.#parts
    const list = this.#list(await versions.remembered(address), version)
    const trust = await catalogue.trust(address)
    const signed: Finding[] =
      trust === undefined ? [] : [{ about: 'trust', verdict: 'ok', at: trust.signedSince, text: describeTrust(trust) }]
    if (version === undefined) {
      const held = await catalogue.installableVersions(address)
      return {
        summary: this.#summarizeAll(list, held.length),
        findings: [...list.findings, ...signed, heldVersions(held)],
      }
    }
    const { held, findings } = await explainRelease(address, version, this.#parts)
    const known = Object.keys(held.release?.platforms ?? {}).length
    const facts = { list, held: held.archives.size, known, findings }
    return { summary: this.#summarize(facts), findings: [...list.findings, ...findings, ...signed] }
  }

  async #module(address: ModuleAddress, version: Version | undefined): Promise<Explained> {
    const { moduleLists, moduleCatalogue } = this.#parts
    const list = this.#list(await moduleLists.remembered(address), version)
    if (version === undefined) {
      const held = await moduleCatalogue.heldVersions(address)
      return { summary: this.#summarizeAll(list, held.length), findings: [...list.findings, heldVersions(held)] }
    }
    const { record, findings } = await explainModuleVersion({ address, version }, this.#parts)
    const held = record === undefined ? 0 : 1
    return {
      summary: this.#summarize({ list, held, known: held, findings }),
      findings: [...list.findings, ...findings],
    }
  }

  #list(remembered: Parameters<typeof explainList>[0], version: Version | undefined): ExplainedList {
    const { isSealed, now, freshForMs } = this.#parts
    // A sealed mirror does not look at lists.
    if (isSealed) return { listing: 'unknown', isStale: false, findings: [] }
    return explainList(remembered, version, { now: now(), freshForMs })
  }

  #summarizeAll({ listing, isStale, findings }: ExplainedList, held: number): string {
    const has =
      held === 0 ? 'nothing of it is held' : `${counted(held, 'version')} of it ${held === 1 ? 'is' : 'are'} held`
    if (this.#parts.isSealed)
      return held === 0
        ? 'is not there: nothing of it is held, and this mirror is sealed'
        : `is served from what is held: ${has}`
    if (listing === 'notListed') return `is not there by its origin's word; ${has}`
    if (listing === 'unknown') return `has not been asked for lately, or its origin did not answer; ${has}`
    const trouble = findings.find(({ about }) => about === 'origin')
    if (trouble !== undefined)
      return `is listed from an old list, as its origin cannot be asked (${trouble.code}); ${has}`
    return `is listed${isStale ? ', and its list is asked for anew by the next request' : ''}; ${has}`
  }

  /** The gravest thing comes first. */
  #summarize({ list, held, known, findings }: Facts): string {
    const isRefused = ({ verdict }: Finding): boolean => verdict === 'refused'
    const changed = findings.find(({ verdict }) => verdict === 'changed')
    const refused = findings.find(isRefused)
    if (findings.some(({ verdict }) => verdict === 'damaged'))
      return `is recorded, but a file of it is gone or damaged; ${howMended(this.#parts.isSealed)}`
    if (this.#parts.isSealed)
      return held > 0
        ? `is served from what is held: ${counted(held, 'archive')}`
        : 'is not there: it is not held, and this mirror is sealed'
    if (changed !== undefined)
      return 'is served as it was first installed; its origin offers other bytes by now, which are refused until an operator accepts them'
    if (refused !== undefined && known === 0)
      return `is refused (${refused.code ?? 'policy'}): ${withoutDot(refused.text)}`
    if (refused !== undefined)
      return `is served, but ${findings.filter(isRefused).length} platforms or archives of it are refused (${refused.code})`
    if (list.listing === 'notListed' && held > 0)
      return 'is served from what is held, though its origin does not list it any more'
    if (list.listing === 'notListed') return 'is not there: its origin does not list it'
    const outage = [...list.findings, ...findings].find(
      ({ about, verdict }) => about === 'origin' && verdict === 'stale',
    )
    if (outage !== undefined && known === 0) return `cannot be told: its origin could not be asked (${outage.code})`
    if (outage !== undefined) return `is served from what is known, as its origin cannot be asked (${outage.code})`
    if (known === 0)
      return list.listing === 'listed'
        ? 'is listed, and nobody has asked for it yet'
        : 'is not known here: nobody has asked for it'
    return `is ${list.listing === 'listed' ? 'listed and ' : ''}served; ${counted(held, 'archive')} of it ${held === 1 ? 'is' : 'are'} held`
  }
}

interface Explained {
  readonly summary: string
  readonly findings: readonly Finding[]
}

interface Facts {
  readonly list: ExplainedList
  /** Archives. */
  readonly held: number
  /** Platforms with accepted evidence; of a module, 1 if it is held. */
  readonly known: number
  readonly findings: readonly Finding[]
}

function heldVersions(held: readonly Version[]): Finding {
  const names = held.length > 10 ? `${held.slice(-10).join(', ')} and ${held.length - 10} before` : held.join(', ')
  if (held.length === 0) return { about: 'archive', verdict: 'missing', text: 'No version of it is held.' }
  return { about: 'archive', verdict: 'ok', text: `Held: ${names}.` }
}

function describeTrust({ keyId, version }: { keyId: string; version: string }): string {
  return `It was signed once (${version}, by key ${keyId}), so releases that nobody signs are refused.`
}

function withoutDot(text: string): string {
  return text.replace(/\.$/, '')
}
