import { spawn, spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { PROCESS_ENV } from '../e2e/mirror-fixture.ts'
import { PROGRAM } from '../programs.ts'

/** True if `script` of util-linux can give a program a terminal; else says so loudly. */
export function terminalAvailable(): boolean {
  if (spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0) return true
  console.warn('SKIPPED: script (util-linux) is not there; nothing is tested on a terminal')
  return false
}

/** A command that runs on a terminal of its own. */
export interface TerminalRun extends AsyncDisposable {
  /** Everything that it has written, with all control sequences. */
  readonly screen: string
  /** Waits until the screen matches. @throws Error with the screen after 30 seconds */
  waitFor(pattern: RegExp): Promise<void>
  /** Types; `\u0003` is Ctrl-C. */
  type(text: string): void
  /** How it exited. */
  readonly exitCode: Promise<number>
}

/** Runs the program with these arguments on a pseudo-terminal of 120 columns. */
export function runOnTerminal(args: readonly string[]): TerminalRun {
  const command = `stty cols 120; exec ${[...PROGRAM, ...args].map(quote).join(' ')}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    env: { ...PROCESS_ENV, TERM: 'xterm', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk
  })
  const exitCode = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  return {
    get screen() {
      return screen
    },
    async waitFor(pattern) {
      const until = Date.now() + 30_000
      while (!pattern.test(screen)) {
        if (Date.now() > until) throw new Error(`never on the screen: ${pattern}\n${JSON.stringify(screen)}`)
        await sleep(20)
      }
    },
    type: (text) => void child.stdin.write(text),
    exitCode,
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      child.kill('SIGKILL')
      await exitCode
    },
  }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
