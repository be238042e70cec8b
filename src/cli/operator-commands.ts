import type { Command } from 'commander'

/** One command that speaks to the admin API. */
interface OperatorCommand {
  readonly name: string
  readonly description: string
  /** What defines its arguments, options and action. */
  readonly load: () => Promise<(command: Command) => void>
}

const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'warm',
    description: 'fetch providers and modules before anybody asks for them',
    load: async () => (await import('./warm.ts')).defineWarm,
  },
  {
    name: 'list',
    description: 'list what is held',
    load: async () => (await import('./list.ts')).defineList,
  },
  {
    name: 'show',
    description: 'show all about something that is held',
    load: async () => (await import('./show.ts')).defineShow,
  },
  {
    name: 'purge',
    description: 'remove something that is held',
    load: async () => (await import('./purge.ts')).definePurge,
  },
  {
    name: 'refresh',
    description: 'ask the origin anew, now',
    load: async () => (await import('./refresh.ts')).defineRefresh,
  },
  {
    name: 'pin',
    description: 'keep things from eviction and purge',
    load: async () => (await import('./pin.ts')).definePin,
  },
  {
    name: 'verify',
    description: 'hash what is held again, and mend what is damaged',
    load: async () => (await import('./verify.ts')).defineVerify,
  },
  {
    name: 'explain',
    description: 'tell why clients see what they see',
    load: async () => (await import('./explain.ts')).defineExplain,
  },
  {
    name: 'jobs',
    description: 'list, show, watch and cancel the work that goes on by itself',
    load: async () => (await import('./jobs.ts')).defineJobs,
  },
  {
    name: 'stats',
    description: 'show what the mirror has saved, and how full it is',
    load: async () => (await import('./stats.ts')).defineStats,
  },
  {
    name: 'origins',
    description: 'show how the origin registries are',
    load: async () => (await import('./origins.ts')).defineOrigins,
  },
]

/**
 * Adds the commands that speak to the admin API. Only those that `words`, the arguments of the program, may mean are
 * loaded; the others tell their name and description for the list in `--help`.
 */
export async function addOperatorCommands(program: Command, words: readonly string[]): Promise<void> {
  for (const { name, description, load } of COMMANDS) {
    const command = program.command(name).description(description)
    if (words.includes(name)) (await load())(command)
  }
}
