import { CURRENT_PLATFORM, networkMirrorConfig } from '../e2e/terraform-cli.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import { MODULE_TROUBLES } from './module-troubles.ts'
import {
  HOST,
  LIMITED_HOST,
  PRIVATE_HOST,
  runClient,
  type Stage,
  type Trouble,
  UNTRUSTED_HOST,
} from './trouble-stage.ts'

/** No way to the Internet, as in a closed network; and no name is looked up outside of this machine. */
const NO_WAY_OUT = { HTTPS_PROXY: 'http://127.0.0.1:9' }
const OTHER_PLATFORM = CURRENT_PLATFORM === 'darwin_arm64' ? 'linux_amd64' : 'darwin_arm64'

/** Everything that docs/troubleshooting.md tells of, by the name that stands before each block there. */
export const TROUBLES: Readonly<Record<string, Trouble>> = {
  ...MODULE_TROUBLES,
  'unknown-authority': ({ origin }) => ({ caPem: origin.key.asciiArmor }),
  'expired-certificate': ({ imposters }) => ({ url: imposters.expired }),
  'wrong-clock': ({ imposters }) => ({ url: imposters.notYetValid }),
  'other-name': ({ imposters }) => ({ url: imposters.otherName }),
  'plain-http-url': ({ plain }) => ({ url: plain.baseUrl }),
  'tls-off': ({ plain }) => ({ url: plain.baseUrl.replace('http:', 'https:') }),
  'nothing-listens': () => ({ url: 'https://localhost:9/providers/' }),
  'connections-cut': ({ imposters }) => ({ url: imposters.hangsUp }),
  'no-slash': ({ mirror }) => ({ url: mirror.baseUrl.replace(/\/$/, '') }),
  'wrong-door': ({ mirror }) => ({ url: mirror.url }),
  'configuration-not-read': () => ({ env: { ...NO_WAY_OUT, TF_CLI_CONFIG_FILE: '/nowhere/terramirror.tfrc' } }),
  'sign-in-page': ({ imposters }) => ({ url: imposters.html }),
  'media-type': ({ imposters }) => ({ url: imposters.plainText }),
  'credentials-wanted': ({ imposters }) => ({ url: imposters.login }),
  'front-forbids': ({ imposters }) => ({ url: imposters.forbidden }),
  'archive-altered': ({ imposters }) => ({ url: imposters.altered }),
  // Ten seconds is the client's own limit; with another one only the wait is shorter.
  'no-answer': ({ imposters }) => ({ url: imposters.silent, env: { TF_REGISTRY_CLIENT_TIMEOUT: '1' } }),
  'archive-torn': ({ imposters }) => ({ url: imposters.torn }),

  'provider-not-found': () => ({}),
  'origin-not-allowed': () => ({ source: 'elsewhere.example/acme/widget' }),
  'version-not-found': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    return { version: '2.0.0' }
  },
  'platform-missing': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0', platforms: [OTHER_PLATFORM] })
    return {}
  },
  'port-in-address': () => ({ source: `${HOST}:8443/acme/widget` }),
  'sealed-not-cached': ({ sealed }) => ({ url: sealed.baseUrl }),

  'origin-down': (stage, source) => {
    stage.origin.fault({ provider: shortOf(source) }, { drop: true })
    return {}
  },
  'origin-hangs': (stage, source) => {
    stage.origin.fault({ provider: shortOf(source) }, { hang: true })
    return {}
  },
  'origin-fails': (stage, source) => {
    stage.origin.fault({ provider: shortOf(source) }, { status: 500 })
    return {}
  },
  'rate-limit': ({ origin }) => {
    origin.fault({ host: LIMITED_HOST }, { status: 429, headers: { 'retry-after': '30' } })
    return { source: `${LIMITED_HOST}/acme/widget` }
  },
  'origin-untrusted': () => ({ source: `${UNTRUSTED_HOST}/acme/widget` }),
  'origin-wants-token': () => ({ source: `${PRIVATE_HOST}/acme/widget` }),
  'origin-html': (stage, source) => {
    stage.origin.fault({ provider: shortOf(source) }, { status: 200, body: '<html>', contentType: 'text/html' })
    return {}
  },
  'private-address': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    const redirect = 'https://10.1.2.3/widget.zip'
    stage.origin.fault({ provider: shortOf(source), kind: 'archive' }, { redirect })
    return {}
  },

  'bad-signature': async (stage, source) => {
    const key = await createOriginKey()
    await stage.origin.publish({ provider: source, version: '1.0.0', key, listedKeys: [stage.origin.key] })
    return {}
  },
  'not-signed': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0', key: null })
    return {}
  },
  'checksum-mismatch': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    stage.origin.fault({ provider: shortOf(source), kind: 'archive' }, { wrongBytes: true })
    return {}
  },
  'disk-full': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    return { url: stage.full.baseUrl }
  },

  'incomplete-lock': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    return {}
  },
  'lock-of-another-platform': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    const lock = ['providers', 'lock', `-net-mirror=${stage.mirror.baseUrl}`, `-platform=${OTHER_PLATFORM}`]
    return { commands: [lock, ['init', '-lockfile=readonly']] }
  },
  'locked-version-gone': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.1.0' })
    const hash = `h1:${'A'.repeat(43)}=`
    return { lockFile: `provider "${source}" {\n  version = "1.0.0"\n  hashes  = ["${hash}"]\n}\n` }
  },
  'lock-goes-past': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    return { env: NO_WAY_OUT, commands: [['providers', 'lock']] }
  },
  'direct-goes-past': async (stage, source) => {
    await stage.origin.publish({ provider: source, version: '1.0.0' })
    return { env: NO_WAY_OUT, cliConfig: networkMirrorConfig(stage.mirror.baseUrl, { direct: true }) }
  },
}

/** What a client prints in this trouble. Every trouble has a provider of its own, so that they do not meet. */
export async function makeTrouble(stage: Stage, name: string): Promise<string> {
  const source = `${HOST}/acme/${name}`
  const options = await TROUBLES[name]?.(stage, source)
  return runClient(stage, { source, ...options })
}

/** As the origin's faults name a provider of its first host. */
function shortOf(source: string): string {
  return source.replace(`${HOST}/`, '')
}
