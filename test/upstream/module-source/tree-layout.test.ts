import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../../src/errors.ts'
import { layOutTree, type SourceEntry } from '../../../src/upstream/module-source/tree-layout.ts'
import { outcome, thrownBy } from '../../protocol/only-mirror-errors.ts'

const LIMITS = { downloadBytes: 1_000, unpackedBytes: 1_000, files: 20 }

/** `a/b` is a file, `a/b -> ../c` a link, `a/b => c` a hard link, from the root. */
function entry(text: string): SourceEntry<string> {
  const [, path = '', arrow, target = ''] = /^(.*?)(?: (->|=>) (.*))?$/s.exec(text) ?? []
  if (arrow !== undefined) return { kind: 'link', path, target, from: arrow === '->' ? 'folder' : 'root' }
  return { kind: 'file', path, executable: path.endsWith('.sh'), size: 10, content: path }
}

function layOut(texts: readonly string[], singleFolder = false) {
  const { files, notes } = layOutTree(texts.map(entry), { limits: LIMITS, singleFolder })
  return { files: [...files].map(([path, { content }]) => (path === content ? path : `${path}=${content}`)), notes }
}

describe('layOutTree', () => {
  it('sorts by bytes, keeps execute bits, and leaves .git out wherever it is', () => {
    const texts = ['b', 'é', 'a.b', 'a/b', './a-b', '.git/config', 'sub/.git', 'run.sh', 'Z']
    expect(layOut(texts).files).toEqual(['Z', 'a-b=./a-b', 'a.b', 'a/b', 'b', 'run.sh', 'é'])
    expect(layOutTree([entry('run.sh')], { limits: LIMITS, singleFolder: false }).files.get('run.sh')?.executable).toBe(
      true,
    )
  })

  it('makes copies of what links lead to: files, folders, links by links, hard links', () => {
    const { files } = layOut([
      'm/a',
      'm/sub/b',
      'x/a -> ../m/a',
      'y -> m/./sub/',
      'z -> y/b',
      'h => m/a',
      'x/y -> ../y',
    ])
    expect(files).toEqual(['h=m/a', 'm/a', 'm/sub/b', 'x/a=m/a', 'x/y/b=m/sub/b', 'y/b=m/sub/b', 'z=m/sub/b'])
  })

  it('leaves out links that lead nowhere or in a circle, and says so', () => {
    const { files, notes } = layOut(['a/f', 'a/up -> ..', 'gone -> a/nothing', 'l1 -> l2', 'l2 -> l1', 'f2 -> a/f/x'])
    expect(files).toEqual(['a/f'])
    expect(notes).toHaveLength(5)
  })

  it.each([
    ['../x'],
    ['/etc/passwd'],
    ['a/../../x'],
    ['a\\b'],
    ['a\u0000b'],
    ['C:/x'],
    ['a -> ../x'],
    ['d/a -> ../../x'],
    ['a -> /etc/passwd'],
    ['a => ../x'],
    ['x', 'a -> ', 'a'],
    ['a', 'a'],
    ['d -> .', 'd/x'],
    ['f', 'f/x'],
    [],
    ['.git/HEAD'],
  ])('refuses what leaves the tree, is ambiguous or empty: %j', (...texts) => {
    expect(thrownBy(() => layOut(texts)).code).toBe('MODULE_INVALID')
  })

  it('takes the one top folder off, and refuses to guess', () => {
    expect(layOut(['top/a', 'top/b/c', 'top/l -> b'], true).files).toEqual(['a=top/a', 'b/c=top/b/c', 'l/c=top/b/c'])
    expect(thrownBy(() => layOut(['top/a', 'x'], true)).message).toContain('one folder at the top')
    expect(thrownBy(() => layOut(['x'], true)).code).toBe('MODULE_INVALID')
  })

  it('holds the limits, also for what links multiply', () => {
    expect(thrownBy(() => layOut(Array.from({ length: 21 }, (_, i) => `f${i}`))).message).toContain(
      'more than 20 files',
    )
    const doubling = Array.from({ length: 9 }, (_, i) => [`d${i}/a -> ../d${i + 1}`, `d${i}/b -> ../d${i + 1}`]).flat()
    expect(thrownBy(() => layOut([...doubling, 'd9/f'])).message).toContain('more than 20 files')
    const empty = Array.from({ length: 9 }, (_, i) => [`d${i}/a -> ../d${i + 1}`, `d${i}/b -> ../d${i + 1}`]).flat()
    expect(thrownBy(() => layOut([...empty, 'd9/l -> gone'])).code).toBe('MODULE_INVALID')
    const big = { ...entry('f'), size: 1_001 } as SourceEntry<string>
    const tooMuch = outcome(() => layOutTree([big], { limits: LIMITS, singleFolder: false }))
    expect(isMirrorError(tooMuch) && tooMuch.message).toContain('more than 1000 bytes')
  })

  it('refuses links and folders without an end in bounded steps, not by a stack that is full', () => {
    const limits = { ...LIMITS, unpackedBytes: 1e9, files: 50_000 }
    const refusalOf = (entries: readonly SourceEntry<string>[]) =>
      thrownBy(() => layOutTree(entries, { limits, singleFolder: false }))
    const chain = Array.from({ length: 6_000 }, (_, i) => entry(`d${i}/l -> ../d${i + 1}`))
    expect(refusalOf([...chain, entry('d6000/f')])).toMatchObject({
      code: 'MODULE_INVALID',
      message: expect.stringContaining('too deep'),
    })
    expect(refusalOf([entry(`${'x/'.repeat(2_000)}f`)]).message).toContain('too deep')
    // Each step of following is cheap, but there are 38 links of 240 names for every one of thousands of links.
    const deep = 'x/'.repeat(240)
    const hops = Array.from({ length: 38 }, (_, i) => entry(`${deep}h${i} => ${deep}h${i + 1}`))
    const links = Array.from({ length: 20_000 }, (_, i) => entry(`m${i} => ${deep}h0`))
    expect(refusalOf([...hops, entry(`${deep}h38`), ...links]).message).toContain('through too many others')
  })

  it('lays out as many links and as deep folders as no real module has', () => {
    const limits = { ...LIMITS, unpackedBytes: 1e9, files: 50_000 }
    const links = Array.from({ length: 5_000 }, (_, i) => entry(`sub/of/it/l${i} -> ../../../real/of/it/f`))
    const deep = `${'x/'.repeat(250)}f`
    const entries = [...links, entry('real/of/it/f'), entry(deep)]
    const { files } = layOutTree(entries, { limits, singleFolder: false })
    expect([files.size, files.get(deep)?.content]).toEqual([5_002, deep])
  })

  it('never lets a path out, whatever comes', () => {
    const name = fc.constantFrom('a', 'b', '.', '..', '', '.git', 'c')
    const path = fc.array(name, { maxLength: 4 }).map((names) => names.join('/'))
    const text = fc.oneof(
      path,
      fc.tuple(path, path).map(([from, to]) => `${from} -> ${to}`),
    )
    fc.assert(
      fc.property(fc.array(text, { maxLength: 8 }), fc.boolean(), (texts, single) => {
        const result = outcome(() => layOut(texts, single))
        if (isMirrorError(result)) return
        for (const file of result.files) expect(file).not.toMatch(/^\/|\.\.|(^|\/)\.git(\/|=|$)/)
      }),
      { numRuns: 1_000 },
    )
  })
})
