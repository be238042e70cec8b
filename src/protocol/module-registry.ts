import type { JsonObject } from './json.ts'
import type { Version } from './version.ts'

/*
 * The documents of the module registry protocol as this mirror answers them. What origins say in it is read in
 * `module-versions.ts` and `module-location.ts`.
 */

/** Builds the `versions` document: one module, its versions in the order given. Clients read nothing else of it. */
export function moduleVersionsDocument(versions: readonly Version[]): JsonObject {
  return { modules: [{ versions: versions.map((version) => ({ version })) }] }
}
