import type { OriginClientOptions } from '../origin-client.ts'
import { createProxySelector } from '../proxy.ts'
import { createTrustedRoots } from '../trusted-roots.ts'
import { createUrlRules } from '../url-rules.ts'
import { createDial } from './git/dial.ts'
import type { GitCredentials } from './git/git-environment.ts'
import { GitRepositories, type GitRepositoriesOptions } from './git/git-repositories.ts'

/** What git takes beyond what the client of an origin takes. */
export type OriginRepositoriesOptions = Pick<GitRepositoriesOptions, 'workspaces' | 'limits' | 'allowFile'> & {
  readonly credentials: ReadonlyMap<string, GitCredentials>
}

/** The git repositories that an origin's documents point to, under the same rules as everything else of that origin. */
export function createOriginRepositories(client: OriginClientOptions, git: OriginRepositoriesOptions): GitRepositories {
  const { hostname, token, address, allowedHosts, ca, userAgent, idleTimeoutMs, retries, observer, log } = client
  const own = git.credentials.get(hostname) ?? (token === undefined ? undefined : { token })
  return new GitRepositories({
    ...git,
    credentials: own === undefined ? git.credentials : new Map([...git.credentials, [hostname, own]]),
    urlRules: createUrlRules({ ...client, allowHttp: false, hasAddress: address !== undefined, allowedHosts }),
    dial: createDial({
      ...client,
      address,
      proxies: createProxySelector(client.proxy),
      roots: createTrustedRoots(ca, client.hosts),
    }),
    ca,
    userAgent,
    idleTimeoutMs,
    retries,
    observer,
    log,
  })
}
