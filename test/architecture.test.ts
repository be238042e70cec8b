import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** One file for each thing that a folder may or may not import. */
const TARGETS = {
  protocol: 'protocol/platform.ts',
  verify: 'verify/signature.ts',
  policy: 'policy/origin-allow-list.ts',
  'upstream interface': 'upstream/provider-upstream.ts',
  'module upstream interface': 'upstream/module-upstream.ts',
  upstream: 'upstream/discovery.ts',
  'upstream/registry': 'upstream/registry/registry-upstream.ts',
  'blob interface': 'store/blob-store.ts',
  journal: 'store/journal.ts',
  store: 'store/record-store.ts',
  'store/disk': 'store/disk/data-folder.ts',
  'store/memory': 'store/memory/memory-blob-store.ts',
  hcl: 'hcl/hcl-reader.ts',
  mirror: 'mirror/mirror.ts',
  http: 'http/links.ts',
  admin: 'admin/admin-app.ts',
  'admin documents': 'admin/schema/common.ts',
  ui: 'ui/page.ts',
  cli: 'cli/client-config.ts',
  doctor: 'doctor/examination.ts',
  'doctor check': 'doctor/clock.ts',
  config: 'config/schema.ts',
  tls: 'tls/tls-identity.ts',
  errors: 'errors.ts',
  log: 'log.ts',
  metrics: 'metrics/metrics.ts',
  listener: 'listener.ts',
  'start notice': 'start-notice.ts',
  'origin upstreams': 'origin-upstreams.ts',
  storage: 'storage.ts',
  'use cases': 'use-cases.ts',
  'admin operations': 'admin-operations.ts',
  'admin token': 'admin-token.ts',
  'admin server': 'admin-server.ts',
  'unix socket': 'unix-socket.ts',
  'page parts': 'page-parts.ts',
  'health check': 'health-check.ts',
  server: 'server.ts',
  main: 'main.ts',
} as const
type Target = keyof typeof TARGETS

const UPSTREAM: Target[] = ['upstream interface', 'module upstream interface', 'upstream', 'upstream/registry']
const STORE: Target[] = ['blob interface', 'journal', 'store', 'store/disk', 'store/memory']

/** What each folder may import of ours; everything else is forbidden. */
const ALLOWED: Readonly<Record<string, readonly Target[]>> = {
  protocol: ['errors'],
  verify: ['protocol', 'errors'],
  policy: ['protocol', 'errors'],
  hcl: ['protocol', 'errors'],
  upstream: ['protocol', 'errors', 'log', ...UPSTREAM],
  'upstream/registry': ['protocol', 'errors', 'log', ...UPSTREAM],
  store: ['errors', 'log', ...STORE],
  'store/disk': ['errors', 'log', ...STORE],
  mirror: [
    'protocol',
    'verify',
    'policy',
    'hcl',
    'upstream interface',
    'module upstream interface',
    'blob interface',
    'journal',
    'store',
    'errors',
    'log',
  ],
  http: ['mirror', 'protocol', 'blob interface', 'errors', 'log', 'metrics'],
  admin: ['http', 'mirror', 'protocol', 'journal', 'admin documents', 'errors', 'log', 'metrics'],
  metrics: ['mirror', 'policy', 'protocol', 'errors', ...UPSTREAM],
  ui: ['mirror', 'protocol', 'errors'],
  cli: ['config', 'hcl', 'admin documents', 'protocol', 'errors', 'doctor'],
  doctor: [
    'config',
    'hcl',
    'tls',
    'policy',
    'protocol',
    'verify',
    'errors',
    'log',
    'origin upstreams',
    'health check',
    'admin token',
    'doctor check',
    ...UPSTREAM,
    ...STORE,
  ],
  config: ['protocol', 'errors'],
  tls: ['errors', 'log'],
}
/** Harmless, and nobody does it: not worth a rule. */
const UNDECIDED: Readonly<Record<string, readonly Target[]>> = { config: ['log'] }

const folders = Object.keys(ALLOWED)
const pairs = folders.flatMap((folder) =>
  (Object.keys(TARGETS) as Target[])
    .filter((target) => folder !== target && !UNDECIDED[folder]?.includes(target))
    .map((target) => ({ folder, target, allowed: ALLOWED[folder]?.includes(target) === true })),
)

let tempDir: string
let refused: Set<string>

function probePath(folder: string, target: Target): string {
  return `src/${folder}/probe-${TARGETS[target].replaceAll('/', '-')}`
}

/** Lints one import of every kind from every folder, beside a copy of the configuration, in one run. */
beforeAll(() => {
  tempDir = mkdtempSync(join(tmpdir(), 'test-imports-'))
  cpSync(join(ROOT, 'biome.json'), join(tempDir, 'biome.json'))
  for (const { folder, target } of pairs) {
    const path = probePath(folder, target)
    mkdirSync(join(tempDir, dirname(path)), { recursive: true })
    const specifier = relative(dirname(path), `src/${TARGETS[target]}`)
    const from = specifier.startsWith('.') ? specifier : `./${specifier}`
    writeFileSync(join(tempDir, path), `import { probe } from '${from}'\n\nprobe()\n`)
  }
  const biome = join(ROOT, 'node_modules', '.bin', 'biome')
  const options = ['lint', '--only=style/noRestrictedImports', '--reporter=json', '--max-diagnostics=none', '.']
  const { stdout, stderr } = spawnSync(biome, options, { cwd: tempDir, encoding: 'utf8' })
  const start = stdout.indexOf('{')
  if (start < 0) throw new Error(`biome said nothing: ${stderr}`)
  const report = JSON.parse(stdout.slice(start)) as { diagnostics: { category: string; location: { path: string } }[] }
  const found = report.diagnostics.filter(({ category }) => category === 'lint/style/noRestrictedImports')
  refused = new Set(found.map(({ location }) => location.path))
})
afterAll(() => rmSync(tempDir, { recursive: true, force: true }))

describe('imports point one way: protocol <- verify, policy, upstream <- mirror <- http, ui <- server <- main', () => {
  it.each(pairs.filter(({ allowed }) => allowed))('$folder may import $target', ({ folder, target }) => {
    expect(refused).not.toContain(probePath(folder, target))
  })

  it.each(pairs.filter(({ allowed }) => !allowed))('$folder must not import $target', ({ folder, target }) => {
    expect(refused).toContain(probePath(folder, target))
  })

  it('every folder of src has rules', () => {
    const entries = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
    const real = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    expect(folders).toEqual(expect.arrayContaining(real))
    const { overrides } = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8')) as {
      overrides: { includes: string[] }[]
    }
    const ruled = overrides.flatMap(({ includes }) => includes)
    expect(ruled).toEqual(expect.arrayContaining(real.map((name) => `src/${name}/**`)))
  })

  it('every probe stands for a file that exists', () => {
    for (const path of Object.values(TARGETS)) expect(() => readFileSync(join(ROOT, 'src', path))).not.toThrow()
  })
})

describe('dependencies', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>
  const page = readFileSync(join(ROOT, 'docs', 'dependencies.md'), 'utf8')
  const names = ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}).map((name) => ({ kind, name })),
  )

  it.each(names)('$name ($kind) has its reason in docs/dependencies.md', ({ name }) => {
    const types = name.startsWith('@types/') && page.includes('`@types/*`')
    expect(types || new RegExp(`(^|[\\s|])${name}(?=[\\s,|(]|$)`, 'm').test(page)).toBe(true)
  })

  it('the page names no package that is gone', () => {
    const rows = [...page.matchAll(/^\| (?!package|---)([^|]+)\|/gm)].flatMap(([, cell = '']) => cell.split(','))
    const listed = rows.map((name) => name.replace(/\(.*\)/, '').trim())
    expect(names.map(({ name }) => name)).toEqual(expect.arrayContaining(listed))
    expect(listed.length).toBeGreaterThan(15)
  })
})
