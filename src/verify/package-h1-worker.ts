import { parentPort } from 'node:worker_threads'
import { hashPackageZip } from './package-h1.ts'

/*
 * The thread that `PackageHasher` starts. Each message is the path of a zip; the answer is its `PackageHashes`.
 */
parentPort?.on('message', async (path: string) => {
  parentPort?.postMessage(await hashPackageZip(path))
})
