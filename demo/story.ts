import { Cache } from './cache.ts'
import type { Cast } from './cast.ts'
import { createCliClient } from './cli-client.ts'
import {
  type Client,
  CONFIGURATION_FILE,
  findProgram,
  hashesLockedIn,
  type InstallOptions,
  installedIn,
  LOCK_FILE,
  type Requirement,
} from './client.ts'
import { countAsked, countFetched, countOutcomes, protocolRequests } from './counts.ts'
import { showCache, showFlow, showStatedHashes, showVerification } from './evidence.ts'
import type { DemoFolder } from './folder.ts'
import { type LogEntry, Mirror } from './mirror.ts'
import { Origin } from './origin.ts'
import { createProtocolClient } from './protocol-client.ts'
import type { Screen } from './screen.ts'

/** Something that the mirror promises did not hold. */
export class BrokenPromise extends Error {}

/**
 * Tells the whole story on the screen: install through the mirror; be refused falsified bytes; install again without
 * the origin. Its processes are gone when it returns or throws.
 * @throws BrokenPromise if the mirror does not keep a promise; the signal's reason if that fires
 */
export async function tellStory(screen: Screen, folder: DemoFolder, signal: AbortSignal): Promise<void> {
  screen.say('Terramirror, shown on this machine alone: an origin registry, a mirror, and a client that installs')
  screen.say('two providers. Every fact is read from their logs, documents and files while it happens.')

  screen.heading('1. Start an origin and a mirror')
  await using origin = await Origin.start(folder.env, signal)
  const configFile = await folder.writeMirrorConfig(origin.facts)
  await using mirror = await Mirror.start({ configFile, dataDir: folder.dataDir, env: folder.env }, signal)
  const requirements = requirementsFor(origin)
  const client = await chooseClient({ folder, mirror, requirements, signal })
  const cast = { screen, folder, origin, mirror, client, requirements, cache: new Cache(folder.dataDir) }
  introduce(cast, configFile)

  const first = await folder.writeConfiguration('first', requirements)
  const installed = await installFirst(cast, first)
  await refuseFalseBytes(cast, first)
  await installWithoutOrigin(cast, first, installed)
  await end(cast)
}

function requirementsFor({ facts }: Origin): Requirement[] {
  return facts.published.map(({ provider, version }) => ({
    name: provider.slice(provider.lastIndexOf('/') + 1),
    source: `${facts.host}/${provider}`,
    version: `>= ${version}`,
  }))
}

async function chooseClient(parts: {
  folder: DemoFolder
  mirror: Mirror
  requirements: readonly Requirement[]
  signal: AbortSignal
}): Promise<Client> {
  const { folder, mirror, requirements, signal } = parts
  const { shorten, env } = folder
  const program = findProgram(['terraform', 'tofu'])
  if (program === undefined) return createProtocolClient({ mirror, requirements, shorten })
  const cliConfigFile = await folder.writeCliConfig(mirror.url)
  return createCliClient({ program, env, cliConfigFile, caBundleFile: mirror.caBundleFile, signal, shorten })
}

function introduce({ screen, folder, origin, mirror, client }: Cast, configFile: string): void {
  const { address, host, published } = origin.facts
  screen.command(`${folder.variable.slice(1)}=${folder.path}`)
  screen.command(`npm start -- --config ${folder.shorten(configFile)}`)
  screen.facts('origin', [
    `${host} at ${address}, process ${origin.pid}, publishes:`,
    ...published.map(
      ({ provider, version, platforms, keyId }) =>
        `${provider} ${version} for ${platforms.length} platforms, signed with key ${keyId}`,
    ),
  ])
  screen.facts('mirror', [`${mirror.url}, process ${mirror.pid}`])
  screen.facts('client', [client.name])
}

/** Returns what was installed, by place, with its digests. */
async function installFirst(cast: Cast, folder: string): Promise<Map<string, string>> {
  const { screen, origin, client } = cast
  screen.heading('2. Install through the mirror')
  screen.command(`cd ${cast.folder.shorten(folder)}`)
  screen.command(client.setUp)
  const { ok, asked } = await install(cast, folder, { upgrade: false })
  const fetched = await origin.newRequests()
  await showFlow(cast, asked, fetched)
  screen.facts('asked', [countAsked(asked)])
  screen.facts('fetched', [countFetched(fetched)])
  const keyIds = await showVerification(cast)
  const stated = await showStatedHashes(cast)
  await showCache(cast)

  const installed = await installedIn(folder)
  const expected = origin.facts.published
  judge(screen, ok && installed.size === expected.length, `${client.program} installed ${installed.size} providers`)
  const theirs = expected.map(({ keyId }) => keyId).toSorted()
  judge(screen, keyIds.join() === theirs.join(), 'the keys that vouched are the keys that the origin signs with')
  const locked = await hashesLockedIn(folder)
  const known = locked.length > 0 && locked.every((hash) => stated.has(hash))
  judge(screen, known, `the ${locked.length} hashes in the lock file are hashes that the mirror stated`)
  return installed
}

async function refuseFalseBytes(cast: Cast, folder: string): Promise<void> {
  const { screen, origin, mirror, cache, client } = cast
  screen.heading('3. The origin falsifies a new version')
  const { provider, version, keyId } = await origin.tamper()
  const source = `${origin.facts.host}/${provider}`
  screen.facts('origin', [
    `publishes ${provider} ${version}, signed with key ${keyId} like the last,`,
    'and changes one byte of its archives on their way',
  ])
  judge(screen, await mirror.lists(source, version), `the mirror lists ${version}`)
  await origin.newRequests()
  const { ok, asked } = await install(cast, folder, { upgrade: true })
  const fetched = (await origin.newRequests()).filter(({ kind }) => kind === 'archive')
  screen.facts('fetched', [
    `${countFetched(fetched)} from the origin, which answered ${fetched.map(({ status }) => status).join(', ')}`,
  ])
  const refusal = asked.findLast(({ err }) => err !== undefined)
  screen.facts('refused', [
    `${refusal?.status} ${refusal?.err?.code}`,
    refusal?.err?.message ?? 'the log of the mirror has no refusal',
  ])

  judge(
    screen,
    !ok && refusal?.err?.code === 'CHECKSUM_MISMATCH',
    `the mirror refused it, and ${client.program} failed`,
  )
  const places = [...(await installedIn(folder)).keys()]
  judge(screen, !places.some((place) => place.includes(`/${version}/`)), `nothing of ${version} was installed`)
  const blobs = await cache.blobs()
  judge(screen, !blobs.some(({ digest }) => digest === refusal?.err?.actual), 'the false bytes are not in the cache')
}

async function installWithoutOrigin(cast: Cast, first: string, before: ReadonlyMap<string, string>): Promise<void> {
  const { screen, origin, client } = cast
  screen.heading('4. The origin is gone; install again elsewhere')
  screen.command(`kill ${origin.pid}`)
  screen.facts('origin', [`process ${origin.pid} ended (${await origin.stop()})`])
  const { shorten } = cast.folder
  const folder = await cast.folder.cloneConfiguration(first, 'second')
  const [from, to] = [shorten(first), shorten(folder)]
  screen.command(`mkdir ${to} && cd ${to}`)
  screen.command(`cp ${from}/${CONFIGURATION_FILE} ${from}/${LOCK_FILE} .`)
  screen.command(client.setUp)
  const { ok, asked } = await install(cast, folder, { upgrade: false })
  await showFlow(cast, asked, undefined)
  screen.facts('asked', [countAsked(asked)])
  screen.facts('answered', [countOutcomes(asked)])
  const trouble = asked.find(({ err }) => err !== undefined)?.err
  if (trouble !== undefined) screen.facts('log', [`${trouble.code}: ${trouble.message}`])

  const after = await installedIn(folder)
  const same = [...before].every(([place, digest]) => after.get(place) === digest)
  judge(
    screen,
    ok && same,
    `${client.program} installed the same ${after.size} providers from the cache, byte for byte`,
  )
}

async function end({ screen, mirror }: Cast): Promise<void> {
  screen.heading('5. End')
  const outcome = await mirror.stop()
  judge(screen, outcome === 0, `the mirror stopped in good order, with exit code ${outcome}`)
}

/** Shows the commands, runs the client, and returns what it asked of the mirror, as the mirror logged it. */
async function install(
  { screen, mirror, client }: Cast,
  folder: string,
  options: InstallOptions,
): Promise<{ ok: boolean; asked: LogEntry[] }> {
  const command = client.command(options)
  if (command !== undefined) screen.command(command)
  await mirror.newEntries()
  const { ok, transcript } = await client.install(folder, options)
  screen.output(transcript)
  return { ok, asked: protocolRequests(await mirror.newEntries()) }
}

function judge(screen: Screen, held: boolean, text: string): void {
  screen.verdict(held, text)
  if (!held) throw new BrokenPromise(text)
}
