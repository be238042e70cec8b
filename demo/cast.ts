import type { Cache } from './cache.ts'
import type { Client, Requirement } from './client.ts'
import type { DemoFolder } from './folder.ts'
import type { Mirror } from './mirror.ts'
import type { Origin } from './origin.ts'
import type { Screen } from './screen.ts'

/** All that takes part. */
export interface Cast {
  readonly screen: Screen
  readonly folder: DemoFolder
  readonly origin: Origin
  readonly mirror: Mirror
  readonly client: Client
  readonly cache: Cache
  readonly requirements: readonly Requirement[]
}
