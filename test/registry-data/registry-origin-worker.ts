import { parentPort, workerData } from 'node:worker_threads'
import { startDataOrigin } from './data-origin.ts'
import { readProviders } from './data-set.ts'
import { createRegistrySite } from './registry-site.ts'

/** The whole data set as a registry, on a thread of its own; says where it listens, ends when told anything. */

const { host, certificate } = workerData
const providers = readProviders().flatMap(({ name, data }) => (name === undefined ? [] : [{ name, data }]))
const origin = await startDataOrigin(await createRegistrySite(host, providers), certificate)
parentPort?.once('message', async () => {
  await origin[Symbol.asyncDispose]()
  parentPort?.close()
})
parentPort?.postMessage({ address: origin.address, proxy: origin.proxy })
