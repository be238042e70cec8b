import { createOriginKey } from '../origin/origin-key.ts'
import type { Reply, Site } from './data-origin.ts'

/** Answers by their whole URL; everything else is a 404. */
export function createRecordedSite(answers: Readonly<Record<string, Reply | string>>): Site {
  return (url) => {
    const answer = Object.hasOwn(answers, url) ? answers[url] : undefined
    return typeof answer === 'string' ? { body: answer } : answer
  }
}

/**
 * A recorded download document as it is but for the key, which becomes one of the test, and the SHA256SUMS and signature
 * that it names, made of its own file. Nobody recorded those, and nobody has the private key.
 */
export async function withOwnKey(documentUrl: string, recorded: string): Promise<Record<string, Reply | string>> {
  const key = await createOriginKey()
  const document = JSON.parse(recorded)
  const [listed] = document.signing_keys.gpg_public_keys
  document.signing_keys.gpg_public_keys = [{ ...listed, ascii_armor: key.asciiArmor, key_id: key.keyId }]
  const sums = `${document.shasum}  ${document.filename}\n`
  return {
    [documentUrl]: JSON.stringify(document),
    [document.shasums_url]: sums,
    [document.shasums_signature_url]: { body: await key.sign(Buffer.from(sums)) },
  }
}
