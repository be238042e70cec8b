import { z } from 'zod'
import { readHostPattern } from './host-key.ts'
import { baseUrl, basic, flag, host, hostAndPort, type Path, section, token } from './value-kinds.ts'

/** What one origin is allowed and how it is reached. */
export function origin(path: Path) {
  return z
    .strictObject({
      token: token().exactOptional().meta({
        description: 'Bearer token, sent to this host and to the services that its discovery names.',
        example: `\${env:ACME_TOKEN}`,
      }),
      address: hostAndPort().exactOptional().meta({
        description: "Connect here instead of the host's own address. TLS still checks the host's name.",
        example: '10.1.2.3:8443',
      }),
      services: section({
        'providers.v1': baseUrl(['https:', 'http:']).exactOptional().meta({
          description: 'Base URL of the provider registry.',
          example: 'https://registry.acme.example/v1/providers/',
        }),
        'modules.v1': baseUrl(['https:', 'http:']).exactOptional().meta({
          description: 'Base URL of the module registry.',
          example: 'https://registry.acme.example/v1/modules/',
        }),
      }).describe('Base URLs to use instead of service discovery.'),
      caFile: path.exactOptional().meta({
        description: 'Trusted beside the public roots, for this origin and what it points to.',
        example: './acme-ca.pem',
      }),
      allowPrivateAddresses: flag()
        .prefault(false)
        .describe('This host, and what its documents point to, may have a private address.'),
      allowedHosts: z
        .array(host(readHostPattern))
        .exactOptional()
        .meta({
          description: 'What its documents point to must be one of these hosts. Default: any public host.',
          example: ['*.acme.example'],
        }),
      allowHttp: flag()
        .prefault(false)
        .describe('Plain http for `services` and for what documents point to. Discovery is always https.'),
      verification: section({
        signatures: signatures()
          .exactOptional()
          .meta({ description: 'As `verification.signatures`, for this origin.', example: 'whenListed' }),
        expiredKeys: expiredKeys()
          .exactOptional()
          .meta({ description: 'As `verification.expiredKeys`, for this origin.', example: 'refuse' }),
      }).describe('Rules for this origin alone; what is missing is as in `verification`.'),
    })
    .superRefine((value, context) => {
      if (value.allowHttp) return
      for (const [name, url] of Object.entries(value.services)) {
        if (!url.startsWith('http:')) continue
        const message = 'expected an https URL (allowHttp: true at this origin allows http)'
        context.addIssue({ code: 'custom', path: ['services', name], message })
      }
    })
}

/** Credentials for one host that documents point to. */
export function hostCredentials(path: Path) {
  return z
    .strictObject({
      token: token()
        .exactOptional()
        .meta({ description: 'Sent as a bearer token; to git as a password.', example: `\${file:./git-token}` }),
      basic: basic()
        .exactOptional()
        .meta({ description: '`user:password`, instead of `token`.', example: `mirror:\${env:FILES_PASSWORD}` }),
      caFile: path
        .exactOptional()
        .meta({ description: 'Trusted beside the public roots, for this host.', example: './acme-ca.pem' }),
      sshKeyFile: path
        .exactOptional()
        .meta({ description: 'Private key for `git::ssh` sources of modules at this host.', example: './id_ed25519' }),
      knownHostsFile: path.exactOptional().meta({
        description: 'The ssh host key, as `ssh-keyscan` prints it. Goes with `sshKeyFile`.',
        example: './known_hosts',
      }),
    })
    .refine((value) => value.token === undefined || value.basic === undefined, {
      error: 'token and basic exclude each other',
    })
    .refine((value) => (value.sshKeyFile === undefined) === (value.knownHostsFile === undefined), {
      error: 'sshKeyFile and knownHostsFile belong together: the host must be known, and must know us',
    })
}

/** Whether an origin must list keys. */
export function signatures() {
  return z.enum(['required', 'whenListed'])
}

/** Whether a key that has expired since it signed still counts. */
export function expiredKeys() {
  return z.enum(['accept', 'refuse'])
}
