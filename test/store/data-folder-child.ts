/**
 * A process that opens a data folder, for tests that kill it: `data-folder-child.ts FOLDER hold|write`. Prints `open`
 * when it has the folder, or the code and message of the error and ends with 1.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { pino } from 'pino'
import { type DataFolder, openDataFolder } from '../../src/store/disk/data-folder.ts'

async function writeForEver(folder: DataFolder): Promise<void> {
  for (let round = 0; ; round += 1) {
    await using incoming = await folder.blobs.create()
    for (let left = randomInt(4); left >= 0; left -= 1) await incoming.append(randomBytes(randomInt(700_000)))
    const { digest } = await incoming.commit()
    const evidence = randomBytes(3000)
    await folder.blobs.put(evidence)
    const document = { digest, evidence: createHash('sha256').update(evidence).digest('hex'), pad: 'x'.repeat(100_000) }
    await folder.records.put(['written', `record ${round % 7}`], document)
    await folder.metadata.set(`key ${round % 5}`, { pad: 'y'.repeat(50_000), end: true })
    if (round % 5 === 4) await folder.blobs.delete(digest)
  }
}

const [dataDir = '', mode] = process.argv.slice(2)
try {
  const folder = await openDataFolder({ dataDir, log: pino({ level: 'silent' }) })
  console.log('open')
  if (mode === 'write') await writeForEver(folder)
  else setInterval(() => undefined, 1000)
} catch (error) {
  console.log(error instanceof Error && 'code' in error ? `${error.code} ${error.message}` : error)
  process.exitCode = 1
}
