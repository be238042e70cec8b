import type { HashCase, ProtocolCase } from './recorded-cases.ts'
import type { Stage } from './stage.ts'

/** What one recorded case means for us. */
export interface CaseRow<Recorded> {
  /** Its name in the recording. */
  readonly name: string
  /** What the recording says that came of it: the client installs, or fails. */
  readonly client: 'installs' | 'fails'
  /**
   * `ours`: we answer in this form. `avoided`: none of our answers has this form, or what it does to a client.
   * `client`: it lies with the client alone, whoever answers; the check shows that our part is right.
   */
  readonly stance: 'ours' | 'avoided' | 'client'
  /** The property of our answers that the check looks at. */
  readonly promise: string
  /** Provokes it at the origin, and looks at what a client gets from the mirror. */
  readonly check: (stage: Stage, recorded: Recorded) => Promise<unknown>
}

export type HashRow = CaseRow<HashCase>
export type ProtocolRow = CaseRow<ProtocolCase>
