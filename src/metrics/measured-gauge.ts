import { Gauge, type GaugeConfiguration } from 'prom-client'

/** A gauge that has no value, and is not shown, until there is one: an unknown is not zero. */
export class MeasuredGauge {
  readonly #gauge: Gauge

  constructor(config: Omit<GaugeConfiguration<never>, 'labelNames'>) {
    this.#gauge = new Gauge(config)
    this.#gauge.remove()
  }

  /** Undefined: not known. */
  set(value: number | undefined): void {
    if (value === undefined) this.#gauge.remove()
    else this.#gauge.set(value)
  }
}
