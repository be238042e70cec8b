import type { Context } from 'hono'
import { MirrorError } from '../errors.ts'
import type { Call } from '../mirror/call.ts'
import { createDeadline } from '../mirror/deadline.ts'
import { HOPS_HEADER, parseHops } from '../protocol/hops.ts'
import { formatPlatform, type Platform, parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'
import { assertVersion, type Version } from '../protocol/version.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'

/** Clients give up after 10 s (client-contract A9, C11); the rest is for the way there and back. */
const ANSWER_WITHIN_MS = 8_000

/** The provider that the path names. Only what did parse gets into the log. @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS` */
export function addressOf(context: Context<HttpEnv>): ProviderAddress {
  const { hostname = '', namespace = '', type = '' } = context.req.param() as Record<string, string>
  const address = parseProviderAddress({ hostname, namespace, type })
  exchangeOf(context.env.incoming).fields.provider = formatProviderAddress(address)
  return address
}

/** @throws MirrorError `INVALID_ADDRESS` */
export function versionOf(context: Context<HttpEnv>, text: string): Version {
  const version = assertVersion(text)
  exchangeOf(context.env.incoming).fields.version = version
  return version
}

/** `OS_ARCH`. @throws MirrorError `INVALID_ADDRESS` */
export function platformOf(context: Context<HttpEnv>, text: string): Platform {
  const platform = parsePlatform(text)
  exchangeOf(context.env.incoming).fields.platform = formatPlatform(platform)
  return platform
}

/** What the request brings along. @throws MirrorError `MIRROR_LOOP` if the request has been here before */
export function callOf(context: Context<HttpEnv>, instanceId: string): Call {
  const hops = parseHops(context.req.header(HOPS_HEADER))
  if (!hops.includes(instanceId)) return { deadline: createDeadline(ANSWER_WITHIN_MS), hops }
  throw new MirrorError(
    'MIRROR_LOOP',
    `mirrors ask each other in a circle: ${[...hops, instanceId].join(' -> ')}; correct the origins of one of them`,
    { hops },
  )
}
