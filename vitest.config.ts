import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { temporaryRoot } from './test/temp-root.ts'

// Processes and threads that tests start need not compile the same files again.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))

const LONG = ['test/chaos/chaos.test.ts', 'test/registry-data/providers.test.ts']

/** So that no worker is left alone with a long file at the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.some((file) => moduleId.endsWith(file))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Minutes, or root: `npm run test:package` and `npm run test:image`.
    exclude: process.env.PACKAGING === undefined ? ['test/packaging/**/*.long.test.ts'] : [],
    globalSetup: 'test/built-programs.ts',
    sequence: { sequencer: LongFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One more than two cores: end-to-end tests often wait.
    maxWorkers: 3,
    // Modules are loaded once for each worker, not for each file: no file changes what another one sees.
    isolate: false,
    // A chroot has no /dev/shm of ours.
    env: process.env.PACKAGING === undefined ? { TMPDIR: temporaryRoot() } : {},
  },
})
