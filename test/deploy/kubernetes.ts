import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

/** The folder of everything that is deployed. */
export const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url))

/** A Kubernetes object. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is what the schemas judge
export type Resource = any

// Nothing here may reach a cluster.
const env = { PATH: process.env.PATH, KUBECONFIG: '/dev/null' }
const { stdout: version = '' } = spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8', env })
/** 4 is in kubectl 1.21; the one before it knows no `patches` as they are written today. */
export const canRender = Number(/Kustomize Version: v(\d+)/.exec(version ?? '')?.[1] ?? 0) >= 4
if (!canRender)
  console.warn('SKIPPED: no kubectl 1.21 or newer (Debian: kubernetes-client); manifests are not rendered')

/** What `kubectl apply -k` would send. @throws Error with what kubectl says */
export function render(folder: string): Resource[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { cwd: DEPLOY, encoding: 'utf8', env })
  if (status !== 0 || stderr !== '') throw new Error(`kubectl kustomize ${folder}: ${stderr}`)
  return parseAllDocuments(stdout).map((document) => document.toJS())
}

/** Where the schemas of Kubernetes' own OpenAPI document are, and of the Prometheus Operator's resources. */
const SCHEMAS: Readonly<Record<string, string>> = {
  'v1 ConfigMap': 'kubernetes-models/v1/ConfigMap',
  'v1 PersistentVolumeClaim': 'kubernetes-models/v1/PersistentVolumeClaim',
  'v1 Secret': 'kubernetes-models/v1/Secret',
  'v1 Service': 'kubernetes-models/v1/Service',
  'apps/v1 Deployment': 'kubernetes-models/apps/v1/Deployment',
  'apps/v1 StatefulSet': 'kubernetes-models/apps/v1/StatefulSet',
  'policy/v1 PodDisruptionBudget': 'kubernetes-models/policy/v1/PodDisruptionBudget',
  'monitoring.coreos.com/v1 ServiceMonitor':
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor',
}

type Model = { readonly prototype: { validate(this: unknown): void } }

/** What is wrong with an object, by its schema; also every field that the schema does not know. */
export async function findProblems(resource: Resource): Promise<string[]> {
  const { apiVersion, kind } = resource
  const path = SCHEMAS[`${apiVersion} ${kind}`]
  if (path === undefined) return [`there is no schema for ${apiVersion} ${kind}`]
  const { [kind]: model } = (await import(path)) as Record<string, Model>
  if (model === undefined) return [`${path} has no ${kind}`]
  const watched = watchReads(resource)
  try {
    model.prototype.validate.call(watched.value)
  } catch (error) {
    return [String(error)]
  }
  return watched.unread().map((field) => `${field}: unknown field`)
}

/**
 * The schemas allow unknown fields, so a slip of the pen would pass: but what the schema does not know is never looked at.
 * Whoever asks for all keys of an object takes it for a map, of which every key is known.
 */
function watchReads(root: object): { value: unknown; unread(): string[] } {
  const read = new Set<string>()
  const all: string[] = []
  const wrap = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const children = new Map<string, unknown>()
    for (const [key, child] of Object.entries(value)) {
      if (!Array.isArray(value)) all.push(`${path}/${key}`)
      children.set(key, wrap(child, `${path}/${key}`))
    }
    return new Proxy(value, {
      get(target, key) {
        read.add(`${path}/${String(key)}`)
        return typeof key === 'string' && children.has(key) ? children.get(key) : Reflect.get(target, key)
      },
      ownKeys(target) {
        for (const key of children.keys()) read.add(`${path}/${key}`)
        return Reflect.ownKeys(target)
      },
    })
  }
  const value = wrap(root, '')
  return { value, unread: () => all.filter((field) => !read.has(field)) }
}
