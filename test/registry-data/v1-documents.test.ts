import { expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import { filesBelow, readKeys, readProvider, readProviderData, readText } from './data-set.ts'
import { downloadDocument, listedKey, versionsDocument } from './v1-documents.ts'

const PLACE = 'v1-derived/v1/providers/'

describeVectors('the test renders registry answers as the generator of registry.opentofu.org does', () => {
  const derived = filesBelow(PLACE).map((file) => file.slice(PLACE.length))
  test('there are answers to compare with', () => {
    expect(derived.filter((path) => path.endsWith('/versions'))).toHaveLength(8)
    expect(derived.filter((path) => path.includes('/download/'))).toHaveLength(7)
  })

  test.each(derived)('byte for byte: %s', async (path) => {
    const [namespace, type, version, , os, arch] = path.split('/')
    const name = `${namespace}/${type}`
    if (version === 'versions') {
      expect(versionsDocument(readProvider(name))).toBe(readText(PLACE + path))
      return
    }
    const entry = readProvider(name).versions.find((each) => each.version === version)
    const target = entry?.targets.find((each) => each.os === os && each.arch === arch)
    if (entry === undefined || target === undefined) throw new Error(`${path} is not in the slice`)
    const keys = await Promise.all(readKeys(name).map(listedKey))
    expect(downloadDocument(entry, target, keys)).toBe(readText(PLACE + path))
  })

  test('the form of 2026 puts `packages` where the documentation of the protocol has it', () => {
    const [entry] = readProviderData('providers-2026-format/hashicorp-waypoint.json').versions
    const [target] = entry?.targets ?? []
    if (entry === undefined || target === undefined) throw new Error('an empty file')
    const rendered = JSON.parse(downloadDocument(entry, target, []))
    const documented = JSON.parse(readText('../responses/registry.opentofu.org/docs_download_with_packages.json'))
    expect(Object.keys(rendered)).toEqual(Object.keys(documented))
    const shape = (document: typeof rendered) => Object.entries(Object.values(document.packages)[0] as object)
    expect(shape(rendered).map(([key, value]) => [key, typeof value])).toEqual(
      shape(documented).map(([key, value]) => [key, typeof value]),
    )
    expect(Object.keys(rendered.packages)).toHaveLength(entry.targets.length)
  })
})
