import { readFile, writeFile } from 'node:fs/promises'
import { renderConfigurationPage } from './configuration-page.ts'
import { renderMonitoringPage } from './monitoring-page.ts'

/** `npm run docs`: writes the pages, and the parts of pages, that are made from the code. */
const docs = new URL('../../docs/', import.meta.url)
await writeFile(new URL('configuration.md', docs), renderConfigurationPage())
const monitoring = new URL('monitoring.md', docs)
await writeFile(monitoring, renderMonitoringPage(await readFile(monitoring, 'utf8')))
