import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { hashPackageZip } from './package-h1.ts'

/*
 * The thread that `PackageHasher` starts. Each message is the path of a zip; the answer is its `PackageHashes`.
 */

/** Work for later: those who fetch the archive at the same time go first. */
const NICENESS = 10

try {
  // On Linux this is the priority of the thread that calls; elsewhere it would be that of the whole process.
  if (process.platform === 'linux') setPriority(NICENESS)
} catch {
  // A sandbox forbids it: then the hash is there sooner.
}

parentPort?.on('message', async (path: string) => {
  parentPort?.postMessage(await hashPackageZip(path))
})
