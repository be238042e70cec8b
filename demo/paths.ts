import { glob } from 'node:fs/promises'

/** The paths below `cwd` that fit a pattern, sorted; none if there is no such folder. */
export async function listPaths(pattern: string, cwd: string): Promise<string[]> {
  const paths: string[] = []
  for await (const path of glob(pattern, { cwd })) paths.push(path)
  return paths.sort()
}
