import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT } from './bundle.ts'
import { findLocked, nameOf } from './lock-file.ts'

const LICENCE_FILE = /^(licen[cs]e|copying|notice|authors)\b/i

/**
 * The licence texts of packages (folders such as `node_modules/zod`), one after the other.
 * @throws Error for a package without one: it must not be in what we give away
 */
export function collectLicences(packages: readonly string[]): string {
  return packages
    .map((folder) => {
      const { version, license } = findLocked(folder)
      const texts = findTexts(folder).map((file) => readFileSync(file, 'utf8').trim())
      return `${'='.repeat(80)}\n${nameOf(folder)} ${version} (${license})\n\n${texts.join('\n\n')}\n\n`
    })
    .join('')
}

function findTexts(folder: string): string[] {
  const names = readdirSync(join(PROJECT, folder)).filter((name) => LICENCE_FILE.test(name))
  if (names.length > 0) return names.sort().map((name) => join(PROJECT, folder, name))
  const ours = `packaging/files/${nameOf(folder).replace('/', '+')}.licence.txt`
  if (existsSync(join(PROJECT, ours))) return [join(PROJECT, ours)]
  throw new Error(`${folder} has no licence text; find out what holds for it and write ${ours}`)
}
