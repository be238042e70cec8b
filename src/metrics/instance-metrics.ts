import { X509Certificate } from 'node:crypto'
import { Gauge, type Registry } from 'prom-client'

/** What this instance is and in which state. */
export class InstanceMetrics {
  readonly #buildInfo: Gauge<'version' | 'node_version'>
  readonly #sealed: Gauge
  readonly #ready: Gauge
  readonly #certificate: Gauge<'certificate'>

  constructor(registry: Registry) {
    const registers = [registry]
    this.#buildInfo = new Gauge({
      name: 'terramirror_build_info',
      help: 'Always 1; the labels tell the version of Terramirror and of Node.js.',
      labelNames: ['version', 'node_version'],
      registers,
    })
    this.#sealed = new Gauge({
      name: 'terramirror_sealed',
      help: '1 in sealed mode, in which nothing is fetched; 0 online.',
      registers,
    })
    this.#ready = new Gauge({
      name: 'terramirror_ready',
      help: '1 while requests are served; 0 while starting or draining.',
      registers,
    })
    this.#certificate = new Gauge({
      name: 'terramirror_certificate_expiry_timestamp_seconds',
      help: 'When the TLS certificate that clients see (server), and our own authority (authority), stop being valid, in seconds since 1970.',
      labelNames: ['certificate'],
      registers,
    })
  }

  /** Tells once what does not change. */
  describe({ version, sealed }: { version: string; sealed: boolean }): void {
    this.#buildInfo.set({ version, node_version: process.version }, 1)
    this.#sealed.set(sealed ? 1 : 0)
  }

  /** Shows whether requests are served now. */
  showReady(ready: boolean): void {
    this.#ready.set(ready ? 1 : 0)
  }

  /** Shows until when a certificate is valid; of a chain (PEM) the first one counts. */
  showCertificate(certificate: 'server' | 'authority', pem: string): void {
    this.#certificate.set({ certificate }, new X509Certificate(pem).validToDate.getTime() / 1_000)
  }
}
