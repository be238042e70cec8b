import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { assertVersion, compareVersions, type Version } from '../../src/protocol/version.ts'
import {
  ANY_VERSION,
  formatVersionConstraint,
  intersect,
  newestMatching,
  parseModuleVersionConstraint,
  parseVersionConstraint,
  satisfies,
} from '../../src/protocol/version-constraint.ts'
import { CURRENT_PLATFORM, createWorkspace, hostConfig, terraformAvailable } from '../e2e/terraform-cli.ts'
import { startOrigin } from '../origin/origin.ts'
import { zipArchive } from '../origin/provider-archive.ts'
import { fileReply, readAll } from '../origin/reply.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

const VERSIONS = [
  ...['0.9.0', '1.0.0', '1.0.1', '1.1.0', '1.2.3-rc.1', '1.2.3', '1.2.4+build.1', '1.2.10', '1.3.0-beta1', '1.10.0'],
  ...['2.0.0-beta.1', '2.0.0', '2.0.1', '2.1.0', '2.1.1-rc1', '3.0.0-alpha', '3.0.0-alpha.2'],
].map(assertVersion)

/** A constraint, what Terraform 1.11.4 chooses of VERSIONS by it, and how it writes it into the lock file. */
type Choice = [constraint: string, chosen: string | undefined, written?: string]
const CHOICES: Choice[] = [
  ['1', '1.0.0', '1.0.0'],
  ['1.2', undefined],
  ['1.2.3', '1.2.3', '1.2.3'],
  ['= 1.2.3', '1.2.3', '1.2.3'],
  ['=1.2.3', '1.2.3', '1.2.3'],
  ['01.2.3', '1.2.3', '1.2.3'],
  ['1.2.3 ', '1.2.3', '1.2.3'],
  ['\t1.2.3', '1.2.3', '1.2.3'],
  ['!= 2.1.0', '2.0.1', '!= 2.1.0'],
  ['!= 2.1.0, != 2.0.1', '2.0.0', '!= 2.0.1, != 2.1.0'],
  ['> 2.0.0', '2.1.0', '> 2.0.0'],
  ['> 2.1.0', undefined],
  ['>= 2', '2.1.0', '>= 2.0.0'],
  ['< 2', '1.10.0', '< 2.0.0'],
  ['<= 2', '2.0.0', '<= 2.0.0'],
  ['< 1.2.3', '1.1.0', '< 1.2.3'],
  ['~> 1.0', '1.10.0', '~> 1.0'],
  ['~> 1.2', '1.10.0', '~> 1.2'],
  ['~> 1.2.0', '1.2.10', '~> 1.2.0'],
  ['~> 1.2.3', '1.2.10', '~> 1.2.3'],
  ['~>1.2, != 1.10.0', '1.2.10', '~> 1.2, != 1.10.0'],
  ['~> 3.0', undefined],
  ['>=1.0,<1.2', '1.1.0', '>= 1.0.0, < 1.2.0'],
  ['>=1.0 , <1.2', '1.1.0', '>= 1.0.0, < 1.2.0'],
  ['1.2.3, 1.2.10', undefined],
  // Pre-releases.
  ['2.0.0-beta.1', '2.0.0-beta.1', '2.0.0-beta.1'],
  ['= 1.3.0-beta1', '1.3.0-beta1', '1.3.0-beta1'],
  ['2.0.0-beta.1, != 2.0.0', '2.0.0-beta.1', '2.0.0-beta.1, != 2.0.0'],
  ['>= 3.0.0-alpha', undefined],
  ['~> 3.0.0-alpha', undefined],
  ['~> 2.1.1-rc1', undefined],
  ['!= 3.0.0-alpha', '2.1.0', '!= 3.0.0-alpha'],
  ['> 1.2.3-rc.1', '2.1.0', '> 1.2.3-rc.1'],
  ['<= 1.3.0-beta1', '1.2.10', '<= 1.3.0-beta1'],
  ['<1.2.3-rc.1', '1.1.0', '< 1.2.3-rc.1'],
  ['>= 1.2-rc.1', '2.1.0', '>= 1.2.0-rc.1'],
  ['2.0.0-beta.1, 2.0.0-beta.1', '2.0.0-beta.1', '2.0.0-beta.1'],
  // Build metadata.
  ['1.2.4+build.1', '1.2.4+build.1', '1.2.4+build.1'],
  ['>= 1.2.4+zzz, < 1.2.5', '1.2.4+build.1', '>= 1.2.4+zzz, < 1.2.5'],
  ['> 1.2.3, < 1.2.10', '1.2.4+build.1', '> 1.2.3, < 1.2.10'],
  ['~> 1.2.3+b', '1.2.10', '~> 1.2.3+b'],
]

/** The same where providers and modules differ: of providers, then of modules. */
type DifferentChoice = [text: string, provider: string | undefined, module: string | undefined]
const DIFFERENT_CHOICES: DifferentChoice[] = [
  ['~> 1', '1.10.0', '2.1.0'],
  ['1.2.4', undefined, '1.2.4+build.1'],
  ['= 1.2.4+other', undefined, '1.2.4+build.1'],
  ['~> 1.2.3-rc.1', '1.2.10', undefined],
  ['~> 1.2-rc.1', '1.10.0', undefined],
  ['2.0.0-beta.1, >= 1.0', '2.0.0-beta.1', undefined],
  ['3.0.0-alpha.2, >= 3.0.0-alpha', '3.0.0-alpha.2', '3.0.0-alpha.2'],
]

/** Pre-releases of modules that later clients take, and Terraform 1.11.4 does not. */
const NEWER = new Set([
  ...['= 1.3.0-beta1', '2.0.0-beta.1, != 2.0.0', '2.0.0-beta.1, 2.0.0-beta.1', '3.0.0-alpha.2, >= 3.0.0-alpha'],
])

/** What Terraform 1.11.4 refuses for providers and modules alike. */
const REFUSED = [
  ...['', ' ', '> 1.0, ', '> 1.0,,< 2', ', > 1.0', '=> 1.0', '=< 1.0', '1.x', '1.*', '*', 'latest', '>= 1.0 < 2'],
  ...['1.0 || 2.0', '==1.0.0', '>', '~>', '^1.2', '~1.2', '!1.2.3', '> = 1.0', '1.0.0 - 2.0.0', '１.0', '1.2.3\u00a0'],
  ...['99999999999999999999.0.0', '>= 18446744073709551616', '~> 9223372036854775808', '1..2', '.1', '-1'],
]

describe('parseVersionConstraint', () => {
  it.each<Choice>(CHOICES)('resolves %j as terraform does, to %s', (text, chosen, written) => {
    for (const parse of [parseVersionConstraint, parseModuleVersionConstraint]) {
      const constraint = parse(text)
      expect(newestMatching(VERSIONS, constraint)).toBe(chosen)
      expect(newestMatching(VERSIONS.toReversed(), constraint)).toBe(chosen)
      if (written !== undefined) expect(formatVersionConstraint(constraint)).toBe(written)
    }
  })

  it.each<DifferentChoice>(DIFFERENT_CHOICES)(
    'resolves %j for providers to %s and for modules to %s',
    (text, provider, module) => {
      expect(newestMatching(VERSIONS, parseVersionConstraint(text))).toBe(provider)
      expect(newestMatching(VERSIONS, parseModuleVersionConstraint(text))).toBe(module)
    },
  )

  it.each(REFUSED)('refuses %j, as terraform does', (text) => {
    expect(thrownBy(() => parseVersionConstraint(text)).code).toBe('CONSTRAINT_INVALID')
    expect(thrownBy(() => parseModuleVersionConstraint(text)).code).toBe('CONSTRAINT_INVALID')
  })

  it.each(['v1.2.3', '>= v1.0', '=  1.0', '>=\t1.2.3'])('takes %j of modules alone', (text) => {
    expect(thrownBy(() => parseVersionConstraint(text)).code).toBe('CONSTRAINT_INVALID')
    expect(newestMatching(VERSIONS, parseModuleVersionConstraint(text))).toBeDefined()
  })

  it('refuses more than three numbers, which no version here has', () => {
    expect(thrownBy(() => parseVersionConstraint('~> 1.2.3.4')).message).toContain('one to three numbers')
    expect(thrownBy(() => parseModuleVersionConstraint('1.2.3.4')).message).toContain('one to three numbers')
  })

  it('says which part is wrong, and what was meant', () => {
    expect(thrownBy(() => parseVersionConstraint('>= 1.0, => 2.0')).message).toBe(
      'not a version constraint: ">= 1.0, => 2.0": "=>" is no operator; did you mean ">="? (part 2 of 2)',
    )
    expect(thrownBy(() => parseVersionConstraint('>= v1')).message).toContain('must not begin with v')
    expect(thrownBy(() => parseVersionConstraint('>= 1,')).message).toContain('a part is empty (part 2 of 2)')
  })

  it('throws nothing but errors of ours, and what it takes prints to itself', () => {
    const piece = fc.constantFrom(
      '~>',
      '>=',
      '<',
      '=',
      '!',
      ' ',
      ',',
      '.',
      '-',
      '+',
      'v',
      '1',
      '0',
      '12',
      'rc',
      '\n',
      '*',
    )
    const text = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
      constraintText,
    )
    fc.assert(
      fc.property(text, fc.constantFrom(parseVersionConstraint, parseModuleVersionConstraint), (input, parse) => {
        const parsed = outcome(() => parse(input))
        if (isMirrorError(parsed)) {
          expect(parsed.code).toBe('CONSTRAINT_INVALID')
          return
        }
        const printed = formatVersionConstraint(parsed)
        expect(formatVersionConstraint(parse(printed))).toBe(printed)
        for (const version of VERSIONS) expect(satisfies(version, parse(printed))).toBe(satisfies(version, parsed))
      }),
      { numRuns: 3000 },
    )
  })

  it('is not slow with hostile text', () => {
    const texts = ['~', '1', '1.', '>= 1,', ' ', '-', '\t', '1.0.0-a.', '1.0.0+', ',', 'v'].map((part) =>
      part.repeat(1_000_000 / part.length),
    )
    for (const text of texts) expect(cpuMs(() => outcome(() => parseVersionConstraint(text)))).toBeLessThan(1_000)
    for (const text of texts.map((each) => each.slice(0, 2_048))) {
      expect(cpuMs(() => outcome(() => parseModuleVersionConstraint(text)))).toBeLessThan(1_000)
    }
    const long = parseVersionConstraint(Array.from({ length: 250 }, (_, n) => `!=1.${n}`).join())
    const many = Array.from({ length: 5_000 }, (_, n) => assertVersion(`1.${n}.0`))
    expect(cpuMs(() => newestMatching(many, long))).toBeLessThan(4_000)
  })
})

const core = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 }), fc.nat({ max: 3 }))
const release = core.map((numbers) => assertVersion(numbers.join('.')))
const version = fc
  .tuple(release, fc.constantFrom('', '', '-alpha', '-rc.1', '-rc.2'))
  .map(([numbers, suffix]) => assertVersion(numbers + suffix))
const term = fc.tuple(
  fc.constantFrom('=', '!=', '>', '>=', '<', '<=', '~>', ''),
  core,
  fc.integer({ min: 1, max: 3 }),
  fc.constantFrom('', '', '', '-rc.1', '-alpha'),
)
type TermParts = typeof term extends fc.Arbitrary<infer T> ? T : never
const write = ([operator, numbers, count, suffix]: TermParts) =>
  `${operator}${operator === '' ? '' : ' '}${numbers.slice(0, count).join('.')}${suffix}`
const constraintText = fc.array(term, { minLength: 1, maxLength: 4 }).map((terms) => terms.map(write).join(', '))

/** Terraform's rules for providers, told again with the arithmetic of another library. */
function naiveTerm(candidate: Version, [operator, numbers, count, suffix]: TermParts): boolean {
  const [major, minor, patch] = numbers.map((number, index) => (index < count ? number : 0))
  const boundary = `${major}.${minor}.${patch}${suffix}`
  const order = semver.compare(candidate, boundary)
  const next = count === 3 ? `${major}.${(minor ?? 0) + 1}.0` : `${(major ?? 0) + 1}.0.0`
  return {
    '': order === 0,
    '=': order === 0,
    '!=': order !== 0,
    '>': order > 0,
    '>=': order >= 0,
    '<': order < 0,
    '<=': order <= 0,
    '~>': order >= 0 && semver.compare(candidate, next) < 0,
  }[operator]
}

describe('satisfies', () => {
  it('agrees with a naive model', () => {
    fc.assert(
      fc.property(version, fc.array(term, { minLength: 1, maxLength: 4 }), (candidate, terms) => {
        const exact = terms.some((each) => ['', '='].includes(each[0]) && naiveTerm(candidate, each))
        const allowed = !candidate.includes('-') || exact
        const expected = allowed && terms.every((each) => naiveTerm(candidate, each))
        expect(satisfies(candidate, parseVersionConstraint(terms.map(write).join(', ')))).toBe(expected)
      }),
      { numRuns: 5000 },
    )
  })

  it('lets every release in where nothing is said, and no pre-release', () => {
    expect(VERSIONS.filter((each) => satisfies(each, ANY_VERSION))).toEqual(
      VERSIONS.filter((each) => !each.includes('-')),
    )
    expect(formatVersionConstraint(ANY_VERSION)).toBe('')
    expect(newestMatching([], ANY_VERSION)).toBeUndefined()
  })
})

describe('intersect', () => {
  it('wants what both want, for releases; and prints as one list of both', () => {
    fc.assert(
      fc.property(constraintText, constraintText, release, (a, b, candidate) => {
        const [left, right] = [parseVersionConstraint(a), parseVersionConstraint(b)]
        const both = intersect(left, right)
        expect(satisfies(candidate, both)).toBe(satisfies(candidate, left) && satisfies(candidate, right))
        expect(formatVersionConstraint(both)).toBe(formatVersionConstraint(parseVersionConstraint(`${a}, ${b}`)))
      }),
      { numRuns: 2000 },
    )
  })

  it('takes a pre-release that one of them names exactly and the other has in its range, as a list does', () => {
    const both = intersect(parseVersionConstraint('2.0.0-beta.1'), parseVersionConstraint('>= 1.0'))
    expect(newestMatching(VERSIONS, both)).toBe('2.0.0-beta.1')
    expect(intersect(both, both)).toEqual(both)
    expect(satisfies(assertVersion('1.0.0'), intersect(ANY_VERSION, ANY_VERSION))).toBe(true)
  })
})

describe('newestMatching', () => {
  it('is the greatest of those that satisfy', () => {
    fc.assert(
      fc.property(fc.array(version, { maxLength: 8 }), constraintText, (versions, text) => {
        const constraint = parseVersionConstraint(text)
        const matching = versions.filter((each) => satisfies(each, constraint)).sort(compareVersions)
        expect(newestMatching(versions, constraint)).toBe(matching.at(-1))
      }),
    )
  })
})

describe.skipIf(terraformAvailable() === undefined)('the real terraform', () => {
  it('chooses the same versions of providers, and writes their constraints so', async () => {
    const rows: Choice[] = [...CHOICES, ...DIFFERENT_CHOICES.map(([text, chosen]): Choice => [text, chosen])]
    const chosen = rows.flatMap(([text, version, written], index) =>
      version === undefined ? [] : [{ name: `p${index}`, text, version, written }],
    )
    const providers = Object.fromEntries(
      chosen.map(({ name, text }) => [name, { source: `acme/${name}`, version: text }]),
    )
    await using terraform = await createWorkspace({ providers, cliConfig: '' })
    const mirror = join(terraform.dir, '../mirror')
    for (const { name } of chosen) {
      const { body } = await zipArchive({ [`terraform-provider-${name}`]: Buffer.from('a provider') })
      const archive = await readAll(body)
      const folder = join(mirror, 'registry.terraform.io/acme', name)
      await mkdir(folder, { recursive: true })
      for (const each of VERSIONS) {
        await writeFile(join(folder, `terraform-provider-${name}_${each}_${CURRENT_PLATFORM}.zip`), archive)
      }
    }
    const config = `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(mirror)}\n  }\n}\n`
    await writeFile(join(terraform.dir, '../cli.tfrc'), config)

    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    const lock = await terraform.lockFile()
    for (const { name, version, written } of chosen) {
      const [, block = ''] = new RegExp(`/acme/${name}" \\{([^}]*)\\}`).exec(lock) ?? []
      expect([name, /version +?= "(.*)"/.exec(block)?.[1]]).toEqual([name, version])
      if (written !== undefined) expect(/constraints = "(.*)"/.exec(block)?.[1]).toBe(written)
    }
  })

  it('chooses the same versions of modules', async () => {
    await using origin = await startOrigin()
    const [host = ''] = origin.hosts
    const { body, sha256 } = await zipArchive({ 'main.tf': Buffer.from('# nothing\n') })
    origin.page(host, '/files/module.zip', fileReply(body, sha256))
    for (const each of VERSIONS) {
      origin.publishModule({ module: 'acme/net/aws', version: each, location: '/files/module.zip' })
    }
    const rows: Choice[] = [...CHOICES, ...DIFFERENT_CHOICES.map(([text, , chosen]): Choice => [text, chosen])]
    rows.push(['v1.2.3', '1.2.3'], ['>=  v2.0', '2.1.0'])
    const calls = rows.map(([text], index) => {
      const source = JSON.stringify(`${host}/acme/net/aws`)
      return `module "m${index}" {\n  source  = ${source}\n  version = ${JSON.stringify(text)}\n}\n`
    })
    await using terraform = await createWorkspace({
      providers: {},
      cliConfig: hostConfig(host, origin.services()),
      caPem: origin.caPem,
    })
    await writeFile(join(terraform.dir, 'main.tf'), calls.join(''))
    const run = await terraform.run(['get'])
    const chosen = rows.map((_, index) => new RegExp(`aws (\\S+) for m${index}\\.\\.\\.`).exec(run.output)?.[1])
    expect(chosen, run.output).toEqual(rows.map(([text, each]) => (NEWER.has(text) ? undefined : each)))
  })
})
