import type { Operations } from '../../src/admin/operations.ts'
import type { Job, JobEvent, JobItem } from '../../src/admin/schema/jobs.ts'
import type { HeldModule, HeldPackage, OriginState, Statistics } from '../../src/admin/schema/stock.ts'
import { MirrorError } from '../../src/errors.ts'

const AT = '2026-12-01T10:00:00.000Z'
const DIGEST = 'ab'.repeat(32)
export const JOB_ID = '0197f0c0-0000-7000-8000-000000000001'

export const job: Job = {
  id: JOB_ID,
  kind: 'warm',
  state: 'running',
  createdAt: AT,
  startedAt: AT,
  progress: { done: 1, total: 2, bytes: 10, totalBytes: null },
  outcomes: { done: 1, held: 0, notPublished: 0, refused: 0, failed: 0 },
}

export const jobItem: JobItem = {
  item: 'registry.example.test/acme/widget 1.0.0 linux_amd64',
  outcome: 'failed',
  reason: 'the origin said 500',
  code: 'UPSTREAM_STATUS',
  bytes: 3,
  totalBytes: 7,
}

const usage = { firstSeenAt: AT, cachedAt: AT, lastUsedAt: null, hits: 0, pins: ['release'] }

export const heldPackage: HeldPackage = {
  item: 'registry.example.test/acme/widget 1.0.0 linux_amd64',
  origin: 'registry.example.test',
  namespace: 'acme',
  type: 'widget',
  version: '1.0.0',
  platform: 'linux_amd64',
  filename: 'terraform-provider-widget_1.0.0_linux_amd64.zip',
  size: 100,
  digest: DIGEST,
  hashes: [`zh:${DIGEST}`],
  authentication: {
    rule: 'signed-checksums',
    signer: { keyId: 'A', fingerprint: 'B', userId: 'C <c@d>', signedAt: AT, keyExpired: false, weak: false },
  },
  archiveUrl: 'https://registry.example.test/a.zip',
  ...usage,
}

const heldModule: HeldModule = {
  item: 'registry.example.test/acme/vpc/aws 1.0.0',
  origin: 'registry.example.test',
  namespace: 'acme',
  name: 'vpc',
  targetSystem: 'aws',
  version: '1.0.0',
  size: 100,
  digest: DIGEST,
  source: 'https://registry.example.test/vpc.tar.gz',
  revision: DIGEST,
  calls: { modules: [{ source: 'a/b/c', version: null }], otherSources: [], providers: [] },
  ...usage,
}

const originState: OriginState = {
  host: 'registry.example.test',
  health: 'failing',
  lastAnswerAt: null,
  lastError: { at: AT, error: 'no answer', code: 'UPSTREAM_TIMEOUT' },
  retryAt: AT,
  signatures: 'required',
  packages: 1,
  modules: 0,
}

const statistics: Statistics = {
  startedAt: AT,
  mode: 'online',
  packages: { count: 1, bytes: 100 },
  modules: { count: null, bytes: null },
  disk: { used: 1, reserved: 0, maxSize: null, free: 5, minFree: 2 },
  answers: { hit: 1 },
  hitRatio: 0.5,
  sentBytes: 1,
  receivedBytes: 2,
  savedBytes: 0,
  top: [{ item: 'x', hits: 3, lastUsedAt: AT }],
  evictions: { items: 0, bytes: 0 },
  quarantine: { files: 0, bytes: 0 },
}

const pinSet = { name: 'release', updatedAt: AT, items: ['registry.example.test/acme/widget'], held: 1, bytes: 100 }

function known(id: string): void {
  if (id !== JOB_ID) throw new MirrorError('ITEM_NOT_FOUND', `there is no job ${JSON.stringify(id)}`, { item: id })
}

async function* tellEnd(): AsyncGenerator<JobEvent> {
  yield { event: 'job', data: job }
  yield { event: 'item', data: jobItem }
  yield { event: 'job', data: { ...job, state: 'done', finishedAt: AT } }
}

/** Use cases that answer every question with one document of its shape; what they were asked is recorded. */
export function standIns(): Operations & { readonly asked: unknown[][] } {
  const asked: unknown[][] = []
  const tell = <T>(name: string, value: T, ...args: unknown[]): T => {
    asked.push([name, ...args])
    return value
  }
  return {
    asked,
    jobs: {
      list: (page) => tell('jobs.list', { items: [job], next: JOB_ID }, page),
      get: (id) => {
        known(id)
        return job
      },
      items: (id, page) => tell('jobs.items', { items: [jobItem] }, id, page),
      events: () => tellEnd(),
      cancel: (id) => {
        known(id)
        return tell('jobs.cancel', { ...job, state: 'cancelled' as const }, id)
      },
    },
    warm: {
      plan: async (request) =>
        tell('warm.plan', { items: [{ item: 'x', outcome: 'fetch' as const }], bytes: 0, unknownSizes: 1 }, request),
      start: async (request) => tell('warm.start', job, request),
    },
    verify: { start: async (request) => tell('verify.start', { ...job, kind: 'verify' as const }, request) },
    stock: {
      listPackages: async (query) =>
        tell('stock.listPackages', { items: [heldPackage], next: heldPackage.item }, query),
      listModules: async (query) => tell('stock.listModules', { items: [heldModule] }, query),
    },
    statistics: { read: () => statistics },
    origins: { list: () => [originState] },
    pins: {
      list: (page) => tell('pins.list', { items: [pinSet] }, page),
      get: () => pinSet,
      put: async (name, request) => tell('pins.put', { ...pinSet, name }, name, request),
      delete: async (name) => tell('pins.delete', undefined, name),
    },
    purge: {
      purge: async (scope, options) => tell('purge', { removed: ['x'], pinned: ['y'], bytes: 100 }, scope, options),
    },
    refresh: {
      refresh: async (request) =>
        tell(
          'refresh',
          { address: request.address, version: null, outcome: 'grown' as const, added: ['1.0.1'], changes: [] },
          request,
        ),
    },
    explain: {
      explain: async (address, version) =>
        tell('explain', { address, version: version ?? null, summary: 'It is held.', findings: [] }, address, version),
    },
  }
}
