/** The files of one folder that clients read, in their order. */
export interface ConfigurationFolder {
  readonly primary: readonly string[]
  /** Merged over the primary ones, one after the other. */
  readonly overrides: readonly string[]
}

const CONFIGURATION_FILE = /^(?<stem>.*)\.(?<kind>tf|tofu)(?<json>\.json)?$/s

/**
 * Picks from paths those of configuration files in `folder` itself (`''` for the root): `.tf`, `.tf.json`, and, as
 * OpenTofu does, `.tofu` and `.tofu.json`, which hide a `.tf` of the same name.
 */
export function listConfigurationFiles(paths: Iterable<string>, folder: string): ConfigurationFolder {
  const wanted = plain(folder)
  const files = [...paths].sort().flatMap((path) => {
    const slash = plain(path).lastIndexOf('/')
    const name = plain(path).slice(slash + 1)
    const groups = CONFIGURATION_FILE.exec(name)?.groups
    const isHere = plain(path).slice(0, Math.max(slash, 0)) === wanted
    if (groups === undefined || !isHere || isIgnored(name)) return []
    return [{ path, stem: groups.stem ?? '', kind: groups.kind, json: groups.json ?? '' }]
  })
  const ofTofu = new Set(files.filter(({ kind }) => kind === 'tofu').map(({ stem, json }) => stem + json))
  const read = files.filter(({ kind, stem, json }) => kind === 'tofu' || !ofTofu.has(stem + json))
  const isOverride = ({ stem }: { stem: string }) => stem === 'override' || stem.endsWith('_override')
  return {
    primary: read.filter((file) => !isOverride(file)).map(({ path }) => path),
    overrides: read.filter(isOverride).map(({ path }) => path),
  }
}

/** `modules/net` of `./modules/net/`. */
function plain(path: string): string {
  return path.replace(/^(?:\.\/+)+/, '').replace(/^\.$|\/+$/, '')
}

/** Hidden files, and those that editors leave behind. */
function isIgnored(name: string): boolean {
  return name.startsWith('.') || name.endsWith('~') || (name.startsWith('#') && name.endsWith('#'))
}
