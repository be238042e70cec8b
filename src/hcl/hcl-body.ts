/**
 * What a file of Terraform's language says, in either of its two syntaxes: arguments and nested blocks. Lines count
 * from 1. Nothing is evaluated.
 */
export interface HclBody {
  readonly attributes: ReadonlyMap<string, HclAttribute>
  readonly blocks: readonly HclBlock[]
}

/** An argument, an item of a list or an entry of an object. */
export interface HclItem {
  readonly value: HclValue
  /** Where the value begins. */
  readonly line: number
}

/** `name = value`. */
export interface HclAttribute extends HclItem {
  /** Where the name stands. */
  readonly nameLine: number
}

/** `type "label" { … }`. */
export interface HclBlock {
  readonly type: string
  readonly labels: readonly string[]
  readonly line: number
  readonly body: HclBody
}

/** A value as far as it can be known without evaluating anything. */
export type HclValue =
  | string
  | number
  | boolean
  | null
  | readonly HclItem[]
  | ReadonlyMap<string, HclItem>
  | HclExpression

/** What needs evaluation: a reference, a call, a template with `${…}`, a heredoc. */
export class HclExpression {
  /** The first name of a plain reference: `aws` of `aws.west` and of `aws`. */
  readonly root: string | undefined

  constructor(root?: string) {
    this.root = root
  }
}

/** An object or map. */
export function isHclObject(value: HclValue): value is ReadonlyMap<string, HclItem> {
  return value instanceof Map
}
