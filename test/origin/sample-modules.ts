import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { gitHttpBackend } from './git-host.ts'
import type { TestOrigin } from './origin.ts'
import { zipArchive } from './provider-archive.ts'
import { fileReply } from './reply.ts'

/** A module as a configuration calls it. */
export interface SampleModule {
  /** `acme/net/aws`, at the first host. */
  readonly module: string
  readonly version: string
  /** Where its files are, for people. */
  readonly from: string
}

/** Equal at every start, so that a mirror that holds the tag of an earlier one does not see it moved. */
const COMMITTED = '2024-01-01T00:00:00Z'

/**
 * Publishes one module whose files are an archive of the origin, and, where git is there, one from a repository of it.
 * The repository is removed with `opened`.
 */
export async function publishSampleModules(
  origin: TestOrigin,
  opened: AsyncDisposableStack,
): Promise<readonly SampleModule[]> {
  const archived = { module: 'acme/net/aws', version: '1.0.0', from: 'an archive' }
  const { body, sha256 } = await zipArchive({ 'main.tf': Buffer.from('output "name" {\n  value = "net"\n}\n') })
  const [host = ''] = origin.hosts
  origin.page(host, '/files/net.zip', fileReply(body, sha256))
  origin.publishModule({ ...archived, location: '/files/net.zip' })
  if (gitHttpBackend() === undefined) return [archived]

  const tagged = { module: 'acme/dns/aws', version: '1.0.0', from: 'a git repository' }
  process.env.GIT_AUTHOR_DATE = COMMITTED
  process.env.GIT_COMMITTER_DATE = COMMITTED
  const repository = opened.use(await GitRepository.make())
  await repository.commit({ 'main.tf': 'output "name" {\n  value = "dns"\n}\n' }, { tag: 'v1.0.0' })
  origin.serveGit('acme/dns', repository)
  origin.publishModule({ ...tagged, location: `git::https://${host}/git/acme/dns.git?ref=v1.0.0` })
  return [archived, tagged]
}
