import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { CLIENT_CPU } from './service.ts'
import { pathOf, type Tool } from './tools.ts'

/** What wrk saw. */
export interface DocumentLoad {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p99Ms: number
}

/** Asks for one document over 64 connections that stay open, from the client's core. @throws Error on any other answer than 2xx or 3xx */
export async function loadDocument(
  url: string,
  {
    seconds,
    connections = 64,
    headers = {},
  }: { seconds: number; connections?: number; headers?: Record<string, string> },
): Promise<DocumentLoad> {
  const header = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const output = await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', ...header, url], CLIENT_CPU)
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(`${url}: ${output}`)
  const [, rate] = /^Requests\/sec:\s+([\d.]+)/m.exec(output) ?? []
  const [, requests] = /^\s+(\d+) requests in /m.exec(output) ?? []
  const [, amount, unit] = /^\s+99%\s+([\d.]+)(us|ms|s)$/m.exec(output) ?? []
  const ms = Number(amount) * (unit === 's' ? 1_000 : unit === 'us' ? 0.001 : 1)
  return { requests: Number(requests), requestsPerSecond: Number(rate), p99Ms: ms }
}

/** What a set of downloads took. */
export interface Downloads {
  /** Until the last byte of the last one. */
  readonly seconds: number
  readonly bytes: number
}

/** How to download. */
export interface DownloadOptions {
  /** How many at once; default 1. */
  readonly clients?: number
  /** How often one after another, over the same connection; default 1. For a single client. */
  readonly turns?: number
  readonly caFile: string
  readonly cpu?: string
  /** `NAME:PORT:ADDRESS`, as curl takes it. */
  readonly resolve?: string
}

/** Downloads a URL, throwing the bytes away. @throws Error if any of the downloads fails */
export async function download(url: string, options: DownloadOptions): Promise<Downloads> {
  const { clients = 1, turns = 1 } = options
  const startedAt = performance.now()
  const output = await run('curl', curlArguments(url, options), options.cpu)
  const seconds = (performance.now() - startedAt) / 1_000
  const answers = output
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number))
  const failed = answers.length !== clients * turns || answers.some(([status]) => status !== 200)
  if (failed) throw new Error(`${url}: ${output}`)
  return { seconds, bytes: answers.reduce((total, [, size = 0]) => total + size, 0) }
}

/** For `turns` downloads by each of `clients`. */
export function curlArguments(url: string, { clients = 1, turns = 1, caFile, resolve }: DownloadOptions): string[] {
  const targets = Array.from({ length: clients * turns }, () => ['-o', '/dev/null', url]).flat()
  const parallel = clients === 1 ? [] : ['-Z', '--parallel-immediate', '--parallel-max', String(clients)]
  const names = resolve === undefined ? [] : ['--resolve', resolve]
  const format = '%{http_code} %{size_download}\\n'
  return [...parallel, '-sS', '--http1.1', '--cacert', caFile, '-w', format, ...names, ...targets]
}

/** Runs a program to its end and gives its output. @throws Error with its output if it fails */
export async function run(tool: Tool, args: readonly string[], cpu?: string): Promise<string> {
  const command = [pathOf(tool), ...args]
  const [program = '', ...rest] = cpu === undefined ? command : [pathOf('taskset'), '-c', cpu, ...command]
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close')
  const [[code], stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  if (code !== 0) throw new Error(`${tool} ${args.join(' ').slice(0, 300)} ended with ${code}: ${stderr}${stdout}`)
  return stdout
}
