import type { Job, JobItem } from '../../src/admin/schema/jobs.ts'
import type { HeldModule, HeldPackage } from '../../src/admin/schema/stock.ts'

/** Some moment, as the API writes it. */
export const TIME = '2026-11-30T10:00:00.000Z'

/** A package of `hashicorp/aws`, as the API gives it. */
export function heldPackage(changes: Partial<HeldPackage> = {}): HeldPackage {
  const parts = { origin: 'registry.terraform.io', namespace: 'hashicorp', type: 'aws', version: '5.100.0' }
  const held = { ...parts, platform: 'linux_amd64', ...changes }
  return {
    item: `${held.origin}/${held.namespace}/${held.type} ${held.version} ${held.platform}`,
    filename: `terraform-provider-${held.type}_${held.version}_${held.platform}.zip`,
    size: 123_456_789,
    digest: 'ab'.repeat(32),
    hashes: [`zh:${'ab'.repeat(32)}`, 'h1:abc='],
    authentication: {
      rule: 'signed-checksums',
      signer: {
        keyId: '34365D9472D7468F',
        fingerprint: 'C874011F0AB405110D02105534365D9472D7468F',
        userId: 'HashiCorp Security <security@hashicorp.com>',
        signedAt: TIME,
        keyExpired: false,
        weak: false,
      },
    },
    archiveUrl: 'https://releases.hashicorp.com/terraform-provider-aws/5.100.0/x.zip',
    firstSeenAt: TIME,
    cachedAt: TIME,
    lastUsedAt: null,
    hits: 7,
    pins: ['prod'],
    ...held,
  }
}

/** A version of `terraform-aws-modules/vpc/aws`, as the API gives it. */
export function heldModule(changes: Partial<HeldModule> = {}): HeldModule {
  return {
    item: 'registry.terraform.io/terraform-aws-modules/vpc/aws 5.1.0',
    origin: 'registry.terraform.io',
    namespace: 'terraform-aws-modules',
    name: 'vpc',
    targetSystem: 'aws',
    version: '5.1.0',
    size: 54_321,
    digest: 'cd'.repeat(32),
    source: 'git::https://github.com/terraform-aws-modules/terraform-aws-vpc',
    revision: 'e0b1d2c3',
    calls: {
      modules: [{ source: 'registry.terraform.io/acme/flow/aws', version: '~> 1.0' }],
      otherSources: ['git::https://example.com/x.git'],
      providers: [{ source: 'registry.terraform.io/hashicorp/aws', version: '>= 5.0' }],
    },
    firstSeenAt: TIME,
    cachedAt: TIME,
    lastUsedAt: TIME,
    hits: 1,
    pins: [],
    ...changes,
  }
}

/** A job that was started and of which nothing is known yet. */
export function job(changes: Partial<Job> = {}): Job {
  return {
    id: 'job-1',
    kind: 'warm',
    state: 'running',
    createdAt: TIME,
    startedAt: TIME,
    progress: { done: 0, total: 2, bytes: 0, totalBytes: 2_000_000 },
    outcomes: { done: 0, held: 0, notPublished: 0, refused: 0, failed: 0 },
    ...changes,
  }
}

/** The same at its end; `outcomes` counts. */
export function finishedJob(outcomes: Partial<Job['outcomes']>, changes: Partial<Job> = {}): Job {
  const all = { done: 0, held: 0, notPublished: 0, refused: 0, failed: 0, ...outcomes }
  const total = Object.values(all).reduce((sum, count) => sum + count, 0)
  return job({
    state: 'done',
    finishedAt: '2026-11-30T10:03:20.000Z',
    progress: { done: total, total, bytes: 2_000_000, totalBytes: 2_000_000 },
    outcomes: all,
    ...changes,
  })
}

/** Something of a job that could not be had. */
export function badItem(changes: Partial<JobItem> = {}): JobItem {
  return {
    item: 'registry.terraform.io/acme/widget 1.0.0 linux_amd64',
    outcome: 'refused',
    reason: 'no listed key made the signature',
    code: 'SIGNATURE_INVALID',
    bytes: 0,
    ...changes,
  }
}
