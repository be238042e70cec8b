import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('data-folder-child.ts', import.meta.url))

/** A running `data-folder-child.ts`. Disposing kills it with SIGKILL and waits for its end. */
export interface DataFolderChild extends AsyncDisposable {
  readonly process: ChildProcess
  /** The first line that it printed: `open`, or an error. */
  readonly firstLine: string
}

/** Starts `data-folder-child.ts` and waits for its first line. */
export async function startChild(dataDir: string, mode: 'hold' | 'write'): Promise<DataFolderChild> {
  const child = spawn(process.execPath, [SCRIPT, dataDir, mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  try {
    const lines = createInterface({ input: child.stdout })
    const [firstLine] = await Promise.race([once(lines, 'line'), ended.then(() => ['ended without a word'])])
    return { process: child, firstLine: String(firstLine), [Symbol.asyncDispose]: kill }
  } catch (error) {
    await kill()
    throw error
  }
}
