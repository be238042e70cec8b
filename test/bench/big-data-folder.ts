import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOST } from './origin-files.ts'

const PLATFORMS = 10
const VERSIONS = 10

/**
 * Fills a data folder with `packages` archives, modelled on the one version that a mirror holds in `model`: ten
 * platforms a version, ten versions a provider. The archives are a few bytes each; nothing looks into them at a start.
 */
export function fillDataFolder(folder: string, packages: number, model: { dataDir: string; provider: string }): void {
  const { dataDir, provider } = model
  cpSync(dataDir, folder, { recursive: true, filter: (path) => !path.endsWith('/lock') })
  const name = provider.split('/')[1] ?? ''
  const source = join(dataDir, 'records', 'providers', HOST, ...provider.split('/'), 'versions', '1.0.0')
  const release = readFileSync(join(source, 'release.json'), 'utf8')
  const pin = readFileSync(join(source, 'pin.json'), 'utf8')
  const archive = readFileSync(join(source, 'archives', 'linux_amd64.json'), 'utf8')
  const digest = (JSON.parse(archive) as { digest: string }).digest
  for (let count = 0; count < packages / PLATFORMS; count++) {
    const type = `${name}-${Math.floor(count / VERSIONS)}`
    const version = `1.${count % VERSIONS}.0`
    const renamed = (text: string): string =>
      text.replaceAll(provider, `bench/${type}`).replaceAll('"1.0.0"', `"${version}"`)
    const target = join(folder, 'records', 'providers', HOST, 'bench', type, 'versions', version)
    mkdirSync(join(target, 'archives'), { recursive: true })
    writeFileSync(join(target, 'release.json'), renamed(release))
    writeFileSync(join(target, 'pin.json'), pin)
    for (let each = 0; each < PLATFORMS; each++) {
      const bytes = `${type} ${version} ${each}`
      const own = createHash('sha256').update(bytes).digest('hex')
      const platform = `linux_p${each}`
      const record = renamed(archive).replaceAll(digest, own).replaceAll('linux_amd64', platform)
      writeFileSync(join(target, 'archives', `${platform}.json`), record)
      const shard = join(folder, 'blobs', 'sha256', own.slice(0, 2))
      mkdirSync(shard, { recursive: true })
      writeFileSync(join(shard, own), bytes, { mode: 0o444 })
    }
  }
}
