/**
 * The text of a module source taken apart as go-getter does it: `git::https://host/repo.git//sub/folder?ref=v1`.
 * Everything stays as it is written: escapes are neither decoded nor added here.
 */
export interface GetterAddress {
  /** What stands before `::`, lower case; undefined if nothing does. */
  readonly getter: string | undefined
  /** The address proper, without query and sub-folder. */
  readonly location: string
  /** Path below the package's root, as written; empty for the root. */
  readonly subfolder: string
  /** The parameters in their order, names and values as written. */
  readonly query: readonly QueryParameter[]
}

/** One `name=value` of a query, as written; a name alone has an empty value. */
export interface QueryParameter {
  readonly name: string
  readonly value: string
  /** Both, as written. */
  readonly text: string
}

const FORCED_GETTER = /^([A-Za-z0-9]+)::(.+)$/s
const S3_HOST = /^(?:[A-Za-z0-9._-]+\.)?s3[.-][A-Za-z0-9.-]*amazonaws\.com$/
/** Hosts whose repositories may be written without a scheme; all of them serve git. */
const REPOSITORY_HOSTS = new Set(['github.com', 'gitlab.com', 'bitbucket.org'])
/** `git@host:path`, as ssh and git take it. The user is what tells it from other things with a colon. */
const SCP_STYLE = /^([A-Za-z0-9._~-]+)@([A-Za-z0-9.-]+):(?!\/\/)\/?(.+)$/s

/**
 * Takes a source apart. Shorthands are expanded: `github.com/a/b//c` and `git@github.com:a/b.git` become git addresses.
 * A sub-folder that was written behind the ref of a git address (`?ref=v1//sub`) is found too: no ref may hold `//`.
 */
export function parseGetterAddress(text: string): GetterAddress {
  const [, forced, rest = text] = FORCED_GETTER.exec(text) ?? []
  const { location, subfolder, query } = splitAddress(rest)
  const expanded = expandShorthand(location)
  const address = {
    getter: forced?.toLowerCase() ?? expanded?.getter,
    location: expanded?.location ?? location,
    subfolder: [expanded?.subfolder, subfolder].filter(Boolean).join('/'),
    query,
  }
  return address.getter === 'git' && address.subfolder === '' ? splitRef(address) : address
}

/** Puts an address together again, in the usual order: getter, location, sub-folder, query. */
export function formatGetterAddress({ getter, location, subfolder, query }: GetterAddress): string {
  const parameters = query.map(({ text }) => text).join('&')
  return [
    getter === undefined ? '' : `${getter}::`,
    location,
    subfolder === '' ? '' : `//${subfolder}`,
    parameters === '' ? '' : `?${parameters}`,
  ].join('')
}

function splitAddress(text: string): Pick<GetterAddress, 'location' | 'subfolder' | 'query'> {
  const { before: path, after } = splitAt(text, '?')
  const query = parseQuery(after)
  const scheme = path.indexOf('://')
  const slashes = path.indexOf('//', scheme < 0 ? 0 : scheme + '://'.length)
  if (slashes < 0) return { location: path, subfolder: '', query }
  return { location: path.slice(0, slashes), subfolder: path.slice(slashes + 2), query }
}

function splitRef(address: GetterAddress): GetterAddress {
  const last = address.query.at(-1)
  const slashes = last?.name === 'ref' ? last.value.indexOf('//') : -1
  if (last === undefined || slashes < 0) return address
  return {
    ...address,
    subfolder: last.value.slice(slashes + 2),
    query: [...address.query.slice(0, -1), parameter(`ref=${last.value.slice(0, slashes)}`)],
  }
}

/** The parameters of a query without its question mark. */
export function parseQuery(text: string): QueryParameter[] {
  return text
    .split('&')
    .filter((part) => part !== '')
    .map(parameter)
}

/** Takes `name=value` apart. */
export function parameter(text: string): QueryParameter {
  const { before: name, after: value } = splitAt(text, '=')
  return { name, value, text }
}

function expandShorthand(location: string): Pick<GetterAddress, 'getter' | 'location' | 'subfolder'> | undefined {
  const scp = SCP_STYLE.exec(location)
  if (scp !== null) {
    const [, user, host, path] = scp
    return { getter: 'git', location: `ssh://${user}@${host}/${path}`, subfolder: '' }
  }
  const [host = '', owner, repository, ...rest] = location.split('/')
  if (S3_HOST.test(host)) return { getter: 's3', location: `https://${location}`, subfolder: '' }
  if (host === 'www.googleapis.com') return { getter: 'gcs', location: `https://${location}`, subfolder: '' }
  if (!REPOSITORY_HOSTS.has(host.toLowerCase()) || !owner || !repository) return undefined
  const name = repository.endsWith('.git') ? repository : `${repository}.git`
  return {
    getter: 'git',
    location: `https://${host.toLowerCase()}/${owner}/${name}`,
    subfolder: rest.filter((part) => part !== '').join('/'),
  }
}

function splitAt(text: string, mark: string): { before: string; after: string } {
  const at = text.indexOf(mark)
  return at < 0 ? { before: text, after: '' } : { before: text.slice(0, at), after: text.slice(at + mark.length) }
}
