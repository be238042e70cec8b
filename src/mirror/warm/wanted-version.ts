import {
  ANY_VERSION,
  formatVersionConstraint,
  intersect,
  parseModuleVersionConstraint,
  parseVersionConstraint,
  type VersionConstraint,
} from '../../protocol/version-constraint.ts'

/** Terraform reads constraints of the two differently. */
export type Versioned = 'provider' | 'module'

/** Which version of something is wanted: the newest one that the constraint lets in. */
export interface WantedVersion {
  /** For people: `~> 5.0`, or `latest`. */
  readonly text: string
  readonly constraint: VersionConstraint
}

/** The newest release that is no pre-release. */
export const LATEST: WantedVersion = { text: 'latest', constraint: ANY_VERSION }

/** Parses `latest`, an exact version or a constraint. @throws MirrorError `CONSTRAINT_INVALID` */
export function parseWantedVersion(text: string, kind: Versioned): WantedVersion {
  if (text.trim() === LATEST.text) return LATEST
  const constraint = kind === 'provider' ? parseVersionConstraint(text) : parseModuleVersionConstraint(text)
  return { text: formatVersionConstraint(constraint), constraint }
}

/** What all of them want. */
export function wantedByAll(wanted: readonly WantedVersion[]): WantedVersion {
  const constraint = wanted.reduce((all, each) => intersect(all, each.constraint), ANY_VERSION)
  return { text: formatVersionConstraint(constraint) || LATEST.text, constraint }
}
