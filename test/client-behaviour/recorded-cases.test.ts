import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import { DOCUMENT_ROWS } from './document-cases.ts'
import { HASH_ROWS } from './hash-cases.ts'
import { VersionDocument } from './mirror-documents.ts'
import { type RecordedCases, readRecordedCases } from './recorded-cases.ts'
import { openStage, type Stage } from './stage.ts'
import { STATUS_ROWS } from './status-cases.ts'
import { URL_ROWS } from './url-cases.ts'

/*
 * Every recorded case of what the real client makes of a mirror's answers, and what of ours keeps clear of it or is of
 * that very form. Each is provoked at the origin of a running mirror.
 */

const hashRows = [...HASH_ROWS, ...URL_ROWS]
const protocolRows = [...STATUS_ROWS, ...DOCUMENT_ROWS]

describeVectors('the recorded behaviour of Terraform 1.11.4', () => {
  let recorded: RecordedCases
  let stage: Stage

  beforeAll(async () => {
    recorded = readRecordedCases()
    stage = await openStage()
  })
  afterAll(() => stage[Symbol.asyncDispose]())

  test('has 56 cases, and the tables name each of them once and no other', () => {
    const cases = [...recorded.hashCases, ...recorded.protocolCases].map((each) => each.case)
    expect(cases).toHaveLength(56)
    const rows = [...hashRows, ...protocolRows].map(({ name }) => name)
    expect(rows.toSorted()).toEqual(cases.toSorted())
  })

  test('the tables read the recording right: who installs and who fails', () => {
    const outcomes = (pairs: [string, boolean][]) => pairs.toSorted(([a], [b]) => (a < b ? -1 : 1))
    const cases = [...recorded.hashCases, ...recorded.protocolCases]
    expect(outcomes([...hashRows, ...protocolRows].map(({ name, client }) => [name, client === 'installs']))).toEqual(
      outcomes(cases.map((each) => [each.case, each.rc === 0])),
    )
  })

  test('of the recorded lists of hashes the schema takes those alone that every client checks well', () => {
    const taken = recorded.hashCases.filter(({ mirror_hashes: hashes }) => {
      return VersionDocument.safeParse({ archives: { linux_amd64: { url: 'x.zip', hashes } } }).success
    })
    expect(taken.map((each) => each.case)).toEqual(['zh', 'withdir_zh', 'withdir_lockfiles_zh'])
  })

  test.each(hashRows)('$name ($stance): $promise', async ({ name, check }) => {
    await check(stage, find(recorded.hashCases, name))
  })

  test.each(protocolRows)('$name ($stance): $promise', async ({ name, check }) => {
    await check(stage, find(recorded.protocolCases, name))
  })
})

function find<Case extends { readonly case: string }>(cases: readonly Case[], name: string): Case {
  const found = cases.find((each) => each.case === name)
  if (found === undefined) throw new Error(`the recording has no case ${name}`)
  return found
}
