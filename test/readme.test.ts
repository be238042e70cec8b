import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.ts'
import { type ErrorCode, type ErrorFields, MirrorError } from '../src/errors.ts'
import { errorAnswer } from '../src/http/error-response.ts'
import { startNotice } from '../src/start-notice.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const errors = readFileSync(join(ROOT, 'src', 'errors.ts'), 'utf8')

/** It ends the process before it serves. */
const NEVER_ANSWERED = ['CONFIGURATION']

const union = errors.slice(errors.indexOf('interface ErrorFields'), errors.indexOf('export type ErrorCode'))
const codes = [...union.matchAll(/^ {2}([A-Z_]+):/gm)].flatMap(([, code = '']) => code)

/** Status by code, as the table in README.md has it. */
function documented(): Map<string, string> {
  const rows = readme.matchAll(/^\| ((?:`[A-Z_]+`[^|]*)+)\|/gm)
  const statuses = new Map<string, string>()
  for (const [, cell = ''] of rows) {
    // `A`, `B` (404): a status is for all codes before it.
    for (const [, names = '', status = ''] of cell.matchAll(/((?:`[A-Z_]+`,? ?)+)\(([^)]*)\)/g)) {
      for (const [, code = ''] of names.matchAll(/`([A-Z_]+)`/g)) statuses.set(code, status)
    }
  }
  return statuses
}

describe('the table of errors', () => {
  const statuses = documented()

  it.each(codes.filter((code) => !NEVER_ANSWERED.includes(code)))('has %s with the status that is answered', (code) => {
    const error = new MirrorError(code as ErrorCode, '', {} as ErrorFields[ErrorCode])
    expect(statuses.get(code)).toMatch(new RegExp(`^${errorAnswer(error, '').status}\\b`))
  })

  it('has the answer to a bug', () => {
    const { status, body } = errorAnswer(new Error('a bug'), '')
    expect(statuses.get(JSON.parse(body).code)).toBe(String(status))
  })

  it('has no code that does not exist', () => {
    expect([...codes, 'UNEXPECTED']).toEqual(expect.arrayContaining([...statuses.keys()]))
  })
})

describe('the client configuration', () => {
  it('is the one that the server prints when it starts, but for the place of the folder', async () => {
    const config = await loadConfig({ set: [], cwd: join(ROOT, 'docs'), env: {} })
    const folder = '/path/to/terramirror/data/state/tls'
    const files = { caBundleFile: `${folder}/ca-bundle.pem`, caFile: `${folder}/ca.pem`, adminUrl: undefined }
    const notice = startNotice(config, { url: 'https://localhost:8443/', ...files })
    const pasted = notice.slice(notice.indexOf('cat >'), notice.indexOf('terraform init') + 'terraform init'.length)
    expect(pasted).toContain('network_mirror')
    expect(readme).toContain(pasted.replaceAll("'/path", '/path').replaceAll("pem'", 'pem'))
  })

  it('the URL of the network mirror ends with a slash wherever it is written', () => {
    const urls = [...readme.matchAll(/(?:url = "|-net-mirror=)([^"\s]+)/g)].flatMap(([, url = '']) => url)
    expect(urls.length).toBeGreaterThan(2)
    for (const url of urls) expect(url).toMatch(/\/providers\/$/)
  })
})

/** Of the headings of a page, as GitHub makes them. */
function anchorsIn(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe('what it points to', () => {
  it('exists, in every page', () => {
    const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    const pages = [
      'README.md',
      'CONTRIBUTING.md',
      ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
    ]
    for (const page of pages) {
      const text = readFileSync(join(ROOT, page), 'utf8')
      for (const [, target = '', anchor] of text.matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue
        const path = target === '' ? join(ROOT, page) : join(ROOT, dirname(page), target)
        expect(existsSync(path), `${page} points to ${target}`).toBe(true)
        if (anchor !== undefined) expect(anchorsIn(path), `${page} points to ${target}#${anchor}`).toContain(anchor)
      }
    }
  })

  it('has every page of docs in its list', () => {
    const list = readFileSync(join(ROOT, 'docs', 'README.md'), 'utf8')
    const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(pages.length).toBeGreaterThan(20)
    for (const page of pages) expect(list, `docs/README.md lists ${page}`).toContain(`(${page})`)
  })

  it('decisions are numbered without a gap, each with its number in the heading', () => {
    const decisions = readdirSync(join(ROOT, 'docs', 'adr')).sort()
    for (const [index, name] of decisions.entries()) {
      expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+\\.md$`))
      expect(readFileSync(join(ROOT, 'docs', 'adr', name), 'utf8')).toMatch(new RegExp(`^# ${index + 1}\\. `))
    }
  })

  it('files that the architecture names are there', () => {
    const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8')
    const files = ['src', 'packaging', 'test'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `/${folder}/${name}`),
    )
    const named = [...page.matchAll(/`([\w/-]+\.ts)`/g)].flatMap(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(50)
    for (const name of named)
      expect(
        files.some((file) => file.endsWith(`/${name}`)),
        name,
      ).toBe(true)
  })

  it('the explained configuration is named and there', () => {
    expect(readme).toContain('config.example.yaml')
    expect(existsSync(join(ROOT, 'config.example.yaml'))).toBe(true)
  })

  it('the commands that it names are scripts', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }
    for (const [, name = ''] of readme.matchAll(/npm run ([a-z]+)/g)) expect(scripts).toHaveProperty(name)
    expect(scripts).toHaveProperty('start')
    expect(scripts).toHaveProperty('test')
  })
})
