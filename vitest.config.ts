import { defineConfig } from 'vitest/config'
import { temporaryRoot } from './test/temp-root.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Minutes, or root: `npm run test:package` and `npm run test:image`.
    exclude: process.env.PACKAGING === undefined ? ['test/packaging/**/*.long.test.ts'] : [],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: end-to-end tests start real processes of their own.
    maxWorkers: 2,
    // Modules are loaded once for each worker, not for each file: no file changes what another one sees.
    isolate: false,
    // A chroot has no /dev/shm of ours.
    env: process.env.PACKAGING === undefined ? { TMPDIR: temporaryRoot() } : {},
  },
})
