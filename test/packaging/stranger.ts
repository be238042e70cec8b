import { spawnSync } from 'node:child_process'

/** Nobody on this machine, in root's group, as some container platforms start everything. */
export const STRANGER = 54321

/** If a process may be started with other mounts and as another user; not so where we are not root. */
export const canIsolate = spawnSync('unshare', ['--mount', 'setpriv', '--version']).status === 0
if (!canIsolate) console.warn('SKIPPED: not root, or no unshare and setpriv: trees are not really read-only here')

type Command = readonly [string, ...string[]]

/** A command before which `tree` is made read-only, for it alone. Where that is not permitted: the command. */
export function readOnly(tree: string, command: Command): Command {
  if (!canIsolate) return command
  const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
  return ['unshare', '--mount', 'sh', '-c', script, 'sh', tree, ...command]
}

/** A command as a user that nobody knows, without any privilege. */
export function asStranger(command: Command): Command {
  const flags = ['--reuid', String(STRANGER), '--regid', '0', '--clear-groups', '--inh-caps=-all', '--no-new-privs']
  return ['setpriv', ...flags, ...command]
}
