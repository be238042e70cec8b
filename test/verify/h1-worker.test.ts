import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { getPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { PackageHasher } from '../../src/verify/h1-worker.ts'
import { hashPackageZip } from '../../src/verify/package-h1.ts'
import { makeZip, openFolder } from './zip-fixture.ts'

const run = promisify(execFile)
const root = new URL('../../', import.meta.url)

/** A worker that counts its jobs, and does what the path says. */
const ODD_WORKER = `
import { parentPort, threadId } from 'node:worker_threads'
let running = 0
parentPort.on('message', async (path) => {
  if (path === 'throw') throw new Error('odd job')
  if (path === 'exit') process.exit(7)
  if (path === 'grow') { const all = []; for (;;) all.push(new Array(1e6).fill({})) }
  if (path === 'hang') return
  running++
  await new Promise((resolve) => setTimeout(resolve, 5))
  parentPort.postMessage({ hashes: [], reason: path + ' ' + threadId + ' ' + running-- })
})`

async function openOddHasher(options: { jobTimeoutMs?: number; idleMs?: number } = {}) {
  const folder = await openFolder()
  const worker = pathToFileURL(await folder.write('odd-worker.mjs', Buffer.from(ODD_WORKER)))
  const hasher = new PackageHasher({ worker, ...options })
  return {
    hasher,
    async [Symbol.asyncDispose]() {
      await hasher[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

function threadOf({ reason = '' }: { reason?: string }): string {
  return reason.split(' ')[1] ?? ''
}

describe('PackageHasher', () => {
  it('computes in its thread what the function computes, and drops only the h1 of a bad zip', async () => {
    await using folder = await openFolder()
    await using hasher = new PackageHasher()
    const good = await folder.write(
      'good.zip',
      await makeZip([
        ['dir/', ''],
        ['dir/file', 'content'],
      ]),
    )
    const bad = await folder.write('bad.zip', Buffer.from('bad'))
    const outcomes = await Promise.all([hasher.hash(good), hasher.hash(bad), hasher.hash(good)])
    expect(outcomes).toEqual([await hashPackageZip(good), await hashPackageZip(bad), await hashPackageZip(good)])
    expect(outcomes[0]?.hashes).toHaveLength(2)
    expect(outcomes[1]?.hashes).toEqual([])
  })

  it('works on one job at a time, in order, in one thread', async () => {
    await using odd = await openOddHasher()
    const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((path) => odd.hasher.hash(path)))
    expect(outcomes.map(({ reason }) => reason?.replace(/ \d+ /, ' '))).toEqual(['a 1', 'b 1', 'c 1', 'd 1'])
    expect(new Set(outcomes.map(threadOf)).size).toBe(1)
  })

  it.each([
    ['throw', 'odd job'],
    ['exit', 'code 7'],
    ['grow', 'memory'],
  ])('loses only the job in which the worker crashes: %s', async (how, reason) => {
    await using odd = await openOddHasher()
    const [before, crashed, after] = await Promise.all(['a', how, 'b'].map((path) => odd.hasher.hash(path)))
    expect(before?.reason).toMatch(/^a /)
    expect(crashed).toEqual({ hashes: [], reason: expect.stringContaining(reason) })
    expect(after?.reason).toMatch(/^b \d+ 1$/)
  })

  it('ends a job that takes too long, and goes on with a new worker', async () => {
    await using odd = await openOddHasher({ jobTimeoutMs: 1000 })
    const [hung, next] = await Promise.all(['hang', 'a'].map((path) => odd.hasher.hash(path)))
    expect(hung).toEqual({ hashes: [], reason: expect.stringContaining('longer than 1000 ms') })
    expect(next?.reason).toMatch(/^a /)
  })

  it('ends an idle worker and starts a new one when needed', async () => {
    await using odd = await openOddHasher({ idleMs: 1 })
    const first = await odd.hasher.hash('a')
    await expect.poll(async () => threadOf(await odd.hasher.hash('b')), { interval: 20 }).not.toBe(threadOf(first))
  })

  it('ends waiting jobs when it is closed, and takes no more', async () => {
    const odd = await openOddHasher()
    const jobs = ['hang', 'a'].map((path) => odd.hasher.hash(path))
    await odd[Symbol.asyncDispose]()
    const closed = { hashes: [], reason: 'the hasher is closed' }
    expect(await Promise.all(jobs)).toEqual([closed, closed])
    expect(await odd.hasher.hash('b')).toEqual(closed)
  })

  it('never keeps the process alive', async () => {
    await using folder = await openFolder()
    const zip = await folder.write('good.zip', await makeZip([['file', 'content']]))
    const script = `
      import { PackageHasher } from ${JSON.stringify(new URL('src/verify/h1-worker.ts', root).href)}
      const hasher = new PackageHasher()
      const wait = setInterval(() => {}, 1000)
      const { hashes } = await hasher.hash(${JSON.stringify(zip)})
      clearInterval(wait)
      console.log(hashes.length)`
    const path = await folder.write('script.mjs', Buffer.from(script))
    const { stdout, stderr } = await run(process.execPath, [path], { timeout: 20_000 })
    expect({ stdout, stderr }).toEqual({ stdout: '1\n', stderr: '' })
  })

  it('finds its worker in a build of plain JavaScript', async () => {
    await using folder = await openFolder()
    const zip = await folder.write('good.zip', await makeZip([['file', 'content']]))
    await symlink(fileURLToPath(new URL('node_modules', root)), join(folder.path, 'node_modules'))
    for (const name of [
      'verify/h1-worker',
      'verify/hidden-entries',
      'verify/package-h1',
      'verify/package-h1-worker',
      'protocol/package-hash',
      'errors',
    ]) {
      const source = await readFile(new URL(`src/${name}.ts`, root), 'utf8')
      const built = stripTypeScriptTypes(source).replace(/(from '\.[^']*)\.ts'/g, "$1.js'")
      await mkdir(dirname(join(folder.path, name)), { recursive: true })
      await folder.write(`${name}.js`, Buffer.from(built))
    }
    await folder.write('package.json', Buffer.from('{ "type": "module" }'))
    const script = `
      import { PackageHasher } from './verify/h1-worker.js'
      const wait = setInterval(() => {}, 1000)
      console.log(JSON.stringify(await new PackageHasher().hash(${JSON.stringify(zip)})))
      clearInterval(wait)`
    const path = await folder.write('script.js', Buffer.from(script))
    const { stdout } = await run(process.execPath, [path], { timeout: 20_000 })
    expect(JSON.parse(stdout)).toEqual(await hashPackageZip(zip))
  })
})

/** Of every thread of this process, as Linux tells it (proc_pid_stat(5)). */
async function nicenesses(): Promise<number[]> {
  const threads = await readdir('/proc/self/task')
  const stats = await Promise.all(threads.map((thread) => readFile(`/proc/self/task/${thread}/stat`, 'latin1')))
  return stats.map((stat) => Number(stat.slice(stat.lastIndexOf(')')).split(' ')[17]))
}

it.runIf(process.platform === 'linux')('hashes behind those that serve, and slows no other thread', async () => {
  await using folder = await openFolder()
  await using hasher = new PackageHasher()
  const path = await folder.write('good.zip', await makeZip([['file', 'content']]))
  const before = await nicenesses()
  await hasher.hash(path)
  const usual = getPriority()
  const after = await nicenesses()
  expect(after.filter((each) => each > usual).length).toBe(before.filter((each) => each > usual).length + 1)
})
