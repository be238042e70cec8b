import { type HclBody, type HclItem, isHclObject } from '../hcl/hcl-body.ts'
import type { CheckContext } from './check-context.ts'
import type { Finding } from './finding.ts'

/** A CLI configuration of a client, for the rules that judge it. */
export interface ClientFile {
  readonly body: HclBody
  /** `FILE:LINE`. */
  readonly place: (line: number) => string
  readonly context: CheckContext
}

/** What rules have found out. */
export interface ClientFileFindings {
  readonly findings: readonly Finding[]
  /** Base URLs of mirrors that the file leads to. */
  readonly mirrors: readonly URL[]
}

/** A text that needs no evaluation. */
export function textOf(item: HclItem | undefined): string | undefined {
  return typeof item?.value === 'string' ? item.value : undefined
}

/** The texts of a list. */
export function textsOf(item: HclItem | undefined): readonly string[] {
  const value = item?.value
  return Array.isArray(value) ? value.flatMap((each: HclItem) => textOf(each) ?? []) : []
}

/** The texts of an object, by their keys. */
export function entriesOf(item: HclItem | undefined): ReadonlyMap<string, string> {
  if (item === undefined || !isHclObject(item.value)) return new Map()
  return new Map(
    [...item.value].flatMap(([key, value]) => (textOf(value) === undefined ? [] : [[key, textOf(value) ?? '']])),
  )
}
