import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { createSections } from '../../src/config/schema.ts'
import { findSchema, listKeyPaths, recordValue, schemaKeys } from '../../src/config/schema-path.ts'

const example = new URL('../../config.example.yaml', import.meta.url)
const sections = createSections('/')
let folder: string
let text: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terramirror-example-'))
  text = await readFile(example, 'utf8')
  await writeFile(join(folder, 'git-token'), 'git-secret\n')
  await writeFile(join(folder, 'admin-token'), 'admin-secret\n')
})
afterAll(() => rm(folder, { recursive: true }))

test('the example as it stands is the default configuration', async () => {
  await writeFile(join(folder, 'config.yaml'), text)
  const loaded = await loadConfig({ set: [], cwd: folder, env: {} })
  await rm(join(folder, 'config.yaml'))
  expect(loaded).toEqual(await loadConfig({ set: [], cwd: folder, env: {} }))
})

test('the example loads with every setting switched on, and names every key that exists', async () => {
  const seen = new Set<string>()
  for (const choice of [0, 1, 2]) {
    const variant = switchOn(text, choice)
    await writeFile(join(folder, 'all.yaml'), variant)
    await loadConfig({ file: 'all.yaml', set: [], cwd: folder, env: { ACME_TOKEN: 'a', FILES_PASSWORD: 'b' } })
    for (const key of collectKeys(parseDocument(variant).toJS())) seen.add(key)
  }
  expect([...seen].sort()).toEqual(
    listKeyPaths(sections)
      .map((path) => path.join('.'))
      .sort(),
  )
})

test('every setting of the example has a comment', () => {
  const lines = text.split('\n')
  const bare = lines.filter((line, index) => {
    if (!/^ *#?[\w."]+:/.test(line) || /^ *# /.test(line)) return false
    const isHost = /^ *#?[\w.]+\.[a-z]+(:\d+)?:$/.test(line)
    return !isHost && !/ # \S/.test(line) && !isCovered(lines, index)
  })
  expect(bare).toEqual([])
})

/** A comment line stands right above. */
function isCovered(lines: string[], index: number): boolean {
  return /^ *# /.test(lines[index - 1] ?? '')
}

/** Deletes the `#` before every setting; of the alternatives for `tls` and `admin.listen`, one each is kept. */
function switchOn(example: string, choice: number): string {
  const lines = example.split('\n').map((line) => line.replace(/^( *)#(?=\S)/, '$1'))
  const dropped = [/^ *tls:/, /^ +listen:/].flatMap((alternative) => {
    const found = lines.filter((line) => alternative.test(line))
    return found.filter((_, index) => index !== choice % found.length)
  })
  return lines.filter((line) => !dropped.includes(line)).join('\n')
}

function collectKeys(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const parent = findSchema(sections, path)
    const isRecord = parent !== undefined && recordValue(parent) !== undefined
    expect(isRecord || (parent !== undefined && schemaKeys(parent).has(key)), [...path, key].join('.')).toBe(true)
    const here = [...path, isRecord ? '*' : key]
    return [here.join('.'), ...collectKeys(inner, here)]
  })
}
