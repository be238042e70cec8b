import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Listener, openListener } from '../src/listener.ts'

let folder: string
let path: string
const opened: Listener[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-socket-'))
  path = join(folder, 'run', 'admin.sock')
})
afterEach(async () => {
  for (const listener of opened.splice(0)) await listener.close(0)
  await rm(folder, { recursive: true, force: true })
})

async function open(socket = path): Promise<Listener> {
  const listener = await openListener({
    address: { socket },
    key: 'admin.listen',
    identity: undefined,
    handle: (_, outgoing) => outgoing.end('here'),
    onHandshakeFailure: () => undefined,
  })
  opened.push(listener)
  return listener
}

async function ask(): Promise<string> {
  const asked = request({ socketPath: path, path: '/', agent: false })
  asked.end()
  const [answer] = await once(asked, 'response')
  return (await answer.toArray()).join('')
}

/** A process that listens there, as an earlier Terramirror would. */
async function listenElsewhere(): Promise<ChildProcess> {
  await mkdir(dirname(path), { mode: 0o700 })
  const program = `require('net').createServer().listen(process.argv[1], () => console.log('listening'))`
  const child = spawn(process.execPath, ['-e', program, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

test('the socket is for this user alone, in a folder that is made for it, and goes with its listener', async () => {
  const listener = await open()
  expect(await ask()).toBe('here')
  expect((await lstat(path)).mode & 0o777).toBe(0o600)
  expect((await lstat(dirname(path))).mode & 0o777).toBe(0o700)
  expect(await readdir(dirname(path))).toEqual(['admin.sock'])
  await listener.close(0)
  expect(await readdir(dirname(path))).toEqual([])
})

test('what a process that was killed left behind is replaced', async () => {
  await kill(await listenElsewhere())
  expect((await lstat(path)).isSocket()).toBe(true)
  await open()
  expect(await ask()).toBe('here')
})

test('a socket on which a process listens is an error, and stays as it is', async () => {
  const child = await listenElsewhere()
  const { ino } = await lstat(path)
  await expect(open()).rejects.toThrow(`cannot listen on the socket ${path}: another process listens there; stop it`)
  expect((await lstat(path)).ino).toBe(ino)
  await kill(child)
})

test('two listeners on one socket: the second is refused, the first goes on', async () => {
  await open()
  await expect(open()).rejects.toThrow('another process listens there')
  expect(await ask()).toBe('here')
})

test('a file that is no socket is never removed', async () => {
  await mkdir(dirname(path), { mode: 0o700 })
  await writeFile(path, 'precious')
  await expect(open()).rejects.toThrow('something else is there')
  expect((await lstat(path)).isFile()).toBe(true)
})

test.each([0o770, 0o707, 0o1777])('a folder that others can write (0%o) is refused with what to do', async (mode) => {
  await mkdir(dirname(path))
  await chmod(dirname(path), mode)
  const advice = join(dirname(path), 'terramirror', 'admin.sock')
  await expect(open()).rejects.toThrow(`other users can write its folder; name a folder below it, such as ${advice}`)
  expect(await readdir(dirname(path))).toEqual([])
  path = advice
  await open()
  expect(await ask()).toBe('here')
})

test('a path that no socket can have is refused, not cut off', async () => {
  await expect(open(join(folder, 'a'.repeat(100), 'admin.sock'))).rejects.toThrow('its path is longer than 98 bytes')
})

test('a stop ends connections on a socket too: idle ones at once, running answers with the grace', async () => {
  const listener = await open()
  const idle = request({ socketPath: path, path: '/', headers: { connection: 'keep-alive' } })
  idle.end()
  const [answer] = await once(idle, 'response')
  await answer.toArray()
  await listener.close(600_000)
})
