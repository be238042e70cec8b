import type { Hostname } from '../protocol/hostname.ts'
import type { ModuleUpstream } from '../upstream/module-upstream.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'

/** The upstream for an allowed origin; undefined if the mirror is sealed: then nothing is ever asked. */
export type UpstreamFor = (hostname: Hostname) => ProviderUpstream | undefined

/** The same for modules. */
export type ModuleUpstreamFor = (hostname: Hostname) => ModuleUpstream | undefined
