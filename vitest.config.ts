import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Long, and its outcome depends on real time: `npm run test:chaos`.
    exclude: [
      ...(process.env.CHAOS === undefined ? ['test/chaos/**'] : []),
      // Minutes, or root: `npm run test:package` and `npm run test:image`.
      ...(process.env.PACKAGING === undefined ? ['test/packaging/**/*.long.test.ts'] : []),
    ],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: end-to-end tests start real processes of their own.
    maxWorkers: 2,
  },
})
