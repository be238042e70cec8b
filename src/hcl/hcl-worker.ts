import { parentPort } from 'node:worker_threads'
import { isMirrorError } from '../errors.ts'
import { readFacts } from './configuration.ts'
import { FileFault, fileInvalid } from './file-fault.ts'
import type { HclJob, HclOutcome } from './hcl-reader.ts'
import { HclParser } from './hcl-syntax.ts'
import { readLockedProviders } from './lock-file.ts'

/*
 * The thread that `hcl-reader.ts` starts: a hostile file takes seconds and hundreds of megabytes here, and goes with it.
 */

let parser: Promise<HclParser> | undefined

parentPort?.on('message', async (job: HclJob) => {
  parentPort?.postMessage(await work(job))
})

async function work(job: HclJob): Promise<HclOutcome> {
  try {
    parser ??= HclParser.load()
    const ready = await parser
    if (job.kind === 'configuration') return { facts: readFacts(job.files, ready, job.options) }
    try {
      return { providers: readLockedProviders(ready.parse(job.text)) }
    } catch (error) {
      throw error instanceof FileFault ? fileInvalid(job.file, error) : error
    }
  } catch (error) {
    // An error of ours keeps neither class nor fields on its way through a port.
    if (isMirrorError(error) && error.is('CONFIGURATION_FILE_INVALID')) {
      return { invalid: { message: error.message, fields: error.fields } }
    }
    return { bug: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
