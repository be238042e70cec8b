import { writeFile } from 'node:fs/promises'
import { renderConfigurationPage } from './configuration-page.ts'

/** `npm run docs`: writes the pages that are made from the code. */
await writeFile(new URL('../../docs/configuration.md', import.meta.url), renderConfigurationPage())
