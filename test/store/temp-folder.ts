import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder, removed with all it holds when disposed. */
export async function makeTempFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'store-test-'))
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await chmod(path, 0o700)
      await rm(path, { recursive: true, force: true })
    },
  }
}
