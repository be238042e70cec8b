import type { HttpEnv } from '../http/exchange.ts'

/** What a request changes, for the audit. Whoever handles it fills it in as soon as it is known. */
export interface Change {
  /** What it is about: an item, a job, a set of pins; in words for people. */
  target: string
  /** False: nothing changes, as in a dry run; then there is no line. */
  isChange: boolean
}

/** The environment of the admin app and its routes. */
export interface AdminEnv extends HttpEnv {
  Variables: {
    change: Change
    /** Template of the path; `*` where none fits. */
    route: string
  }
}
