import { readFileSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { canRender, DEPLOY, findProblems, type Resource, render } from './kubernetes.ts'

const base = canRender ? render('kubernetes/base') : []
const sidecar = canRender ? render('kubernetes/overlays/ci-sidecar') : []

function find(resources: Resource[], kind: string): Resource {
  const found = resources.filter((resource) => resource.kind === kind)
  expect(found, kind).toHaveLength(1)
  return found[0]
}

async function loadText(text: string) {
  await using place = await mkdtempDisposable(join(tmpdir(), 'test-deploy-'))
  await writeFile(join(place.path, 'config.yaml'), text)
  return await loadConfig({ set: [], cwd: place.path, env: {} })
}

/** What every container of a mirror must have, wherever it stands. */
function checkMirror(container: Resource, pod: Resource): void {
  const security = { ...pod.securityContext, ...container.securityContext }
  expect(security).toMatchObject({
    runAsUser: 65532,
    runAsGroup: 0,
    runAsNonRoot: true,
    fsGroup: 65532,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(pod.enableServiceLinks).toBe(false)
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(30)
  expect(container.image).toMatch(/^registry\.example\/terramirror:\d+\.\d+\.\d+$/)
  expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'https', scheme: 'HTTPS' })
  expect(container.startupProbe.httpGet).toEqual({ path: '/readyz', port: 'https', scheme: 'HTTPS' })
  expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'https', scheme: 'HTTPS' })
  expect(container.resources.limits.memory).toBeDefined()
  expect(container.volumeMounts.map(({ mountPath }: Resource) => mountPath)).toEqual([
    '/data',
    '/etc/terramirror',
    '/tmp',
  ])
}

/** Every volume that is mounted exists, and every ConfigMap and claim that is named, too. */
function checkVolumes(resources: Resource[], workload: Resource): void {
  const { containers, initContainers = [], volumes } = workload.spec.template.spec
  const claims = (workload.spec.volumeClaimTemplates ?? []).map(({ metadata }: Resource) => metadata.name)
  const names = [...volumes.map(({ name }: Resource) => name), ...claims]
  for (const container of [...containers, ...initContainers]) {
    for (const { name } of container.volumeMounts) expect(names).toContain(name)
  }
  const known = resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
  for (const { configMap, persistentVolumeClaim } of volumes) {
    if (configMap !== undefined) expect(known).toContain(`ConfigMap ${configMap.name}`)
    if (persistentVolumeClaim !== undefined) {
      expect(known).toContain(`PersistentVolumeClaim ${persistentVolumeClaim.claimName}`)
    }
  }
}

describe.runIf(canRender)('the schemas', () => {
  const deployment = canRender ? find(base, 'Deployment') : undefined

  it.each([
    ['an unknown field', { enableServiceLink: false }, '/spec/template/spec/enableServiceLink: unknown field'],
    [
      'one deep inside',
      { securityContext: { runAsUsr: 1 } },
      '/spec/template/spec/securityContext/runAsUsr: unknown field',
    ],
    ['a value of another kind', { terminationGracePeriodSeconds: 'soon' }, 'terminationGracePeriodSeconds'],
    ['what is missing', { containers: [{ image: 'a' }] }, 'name'],
  ])('find %s', async (_, change, problem) => {
    const changed = structuredClone(deployment)
    Object.assign(changed.spec.template.spec, change)
    expect(await findProblems(changed)).toEqual([expect.stringContaining(problem)])
    expect(await findProblems(deployment)).toEqual([])
  })
})

describe.runIf(canRender)('the base', () => {
  it.each(base.map((resource) => [resource.kind, resource]))(
    '%s is as its schema says, in one namespace',
    async (_, each) => {
      expect(await findProblems(each)).toEqual([])
      expect(each.metadata.namespace).toBe('ci')
    },
  )

  it('has one pod of one mirror, that never writes beside another', () => {
    const deployment = find(base, 'Deployment')
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
    const pod = deployment.spec.template.spec
    checkMirror(pod.containers[0], pod)
    checkVolumes(base, deployment)
    expect(pod.automountServiceAccountToken).toBe(false)
  })

  it('fits together: Service, budget and monitor find the pod and its port', () => {
    const { template, selector } = find(base, 'Deployment').spec
    const service = find(base, 'Service')
    const monitor = find(base, 'ServiceMonitor').spec
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    expect(template.metadata.labels).toMatchObject(service.spec.selector)
    expect(template.metadata.labels).toMatchObject(find(base, 'PodDisruptionBudget').spec.selector.matchLabels)
    expect(service.metadata.labels).toMatchObject(monitor.selector.matchLabels)
    const [port] = template.spec.containers[0].ports
    expect(service.spec.ports[0]).toMatchObject({ port: port.containerPort, targetPort: port.name })
    expect(monitor.endpoints[0]).toMatchObject({ port: service.spec.ports[0].name, scheme: 'https' })
  })

  it('lets a node be drained', () => {
    expect(find(base, 'PodDisruptionBudget').spec).toMatchObject({ maxUnavailable: 1 })
  })

  it('configures a mirror whose certificate has the names that clients and Prometheus use', async () => {
    const config = await loadText(find(base, 'ConfigMap').data['config.yaml'])
    expect(config).toMatchObject({ listen: { host: '0.0.0.0', port: 8443 }, dataDir: '/data' })
    const names = typeof config.listen.tls === 'object' && 'names' in config.listen.tls ? config.listen.tls.names : []
    expect(names).toContain(find(base, 'ServiceMonitor').spec.endpoints[0].tlsConfig.serverName)
    expect(names).toContain(new URL(config.publicUrl ?? '').hostname)
  })

  it('takes the token of the admin API from a Secret, of which there is an example', async () => {
    const secret = parse(readFileSync(join(DEPLOY, 'kubernetes/base/admin-token.example.yaml'), 'utf8'))
    expect(await findProblems(secret)).toEqual([])
    const [{ env }] = find(base, 'Deployment').spec.template.spec.containers
    const { name, valueFrom } = env[0]
    expect(name).toBe('TERRAMIRROR_ADMIN_TOKEN')
    expect(valueFrom.secretKeyRef).toEqual({ name: secret.metadata.name, key: 'token', optional: true })
    expect(Object.keys(secret.stringData)).toEqual(['token'])
    // The example itself must never get into a cluster.
    expect(base.map(({ kind }) => kind)).not.toContain('Secret')
  })
})

describe.runIf(canRender)('the sidecar of a CI runner', () => {
  const set = canRender ? find(sidecar, 'StatefulSet') : undefined

  it.each(sidecar.map((resource) => [resource.kind, resource]))('%s is as its schema says', async (_, each) => {
    expect(await findProblems(each)).toEqual([])
  })

  it('starts before the runner and ends after it', () => {
    const pod = set.spec.template.spec
    const [mirror] = pod.initContainers
    checkMirror(mirror, pod)
    checkVolumes(sidecar, set)
    expect(mirror.restartPolicy).toBe('Always')
  })

  it('configures a mirror with keys that there are, in the place where the image looks', async () => {
    const config = await loadText(find(sidecar, 'ConfigMap').data['config.yaml'])
    expect(config).toMatchObject({ listen: { host: '0.0.0.0', port: 8443 }, dataDir: '/data' })
  })

  it('gives the runner the authority and the configuration that it needs, and no key', () => {
    const [{ volumeMounts, env }] = set.spec.template.spec.containers
    const fromData = volumeMounts.filter(({ name }: Resource) => name === 'terramirror-data')
    expect(fromData).toEqual([
      {
        name: 'terramirror-data',
        mountPath: '/etc/terraform/ca-bundle.pem',
        subPath: 'state/tls/ca-bundle.pem',
        readOnly: true,
      },
    ])
    expect(env).toContainEqual({ name: 'SSL_CERT_FILE', value: '/etc/terraform/ca-bundle.pem' })
    expect(env).toContainEqual({ name: 'TF_CLI_CONFIG_FILE', value: '/etc/terraform/terraformrc' })
    expect(find(sidecar, 'ConfigMap').data.terraformrc).toContain('url = "https://localhost:8443/providers/"')
  })
})
