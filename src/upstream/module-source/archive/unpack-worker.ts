import { parentPort, workerData } from 'node:worker_threads'
import { isMirrorError } from '../../../errors.ts'
import { type UnpackJob, unpackArchive } from './unpack.ts'

/*
 * The thread that `unpackInThread` starts for one archive. Its one message is what came of it.
 */
try {
  parentPort?.postMessage({ entries: await unpackArchive(workerData as UnpackJob) })
} catch (error) {
  const refusal = isMirrorError(error) && error.is('MODULE_INVALID') ? error.fields.reason : undefined
  // An error loses its code on the way to another thread.
  const { message, code, syscall } = error as NodeJS.ErrnoException
  parentPort?.postMessage(refusal === undefined ? { failure: { message, code, syscall } } : { reason: refusal })
}
