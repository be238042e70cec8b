import { getEventListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { createDeadline, settledWithin, waitFor } from '../../src/mirror/deadline.ts'
import { failureOf, settle, widget } from './parts-fixture.ts'

const what = { name: 'the thing', hostname: widget.hostname }
const never = new Promise<never>(() => undefined)

function timeouts(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

describe('waitFor', () => {
  it('gives the result, or the failure as it is', async () => {
    const { signal } = new AbortController()
    expect(await waitFor(Promise.resolve(7), signal, what)).toBe(7)
    const cause = new Error('down')
    expect(await failureOf(waitFor(Promise.reject(cause), signal, what))).toBe(cause)
  })

  it('gives up when the signal fires, naming what was waited for and whom; the work goes on', async () => {
    const controller = new AbortController()
    const work = Promise.withResolvers<number>()
    const waiting = failureOf(waitFor(work.promise, controller.signal, what))
    controller.abort()
    const error = await waiting
    expect(error).toMatchObject({ code: 'UPSTREAM_TIMEOUT', fields: { host: 'registry.example.test' } })
    expect(error.message).toContain('the thing')
    work.resolve(1)
    expect(await work.promise).toBe(1)
  })

  it('gives up at once when the time is over already', async () => {
    expect(await failureOf(waitFor(never, AbortSignal.abort(), what))).toMatchObject({ code: 'UPSTREAM_TIMEOUT' })
  })

  it('leaves no listener on the signal, whatever happened', async () => {
    const controller = new AbortController()
    const { signal } = controller
    await waitFor(Promise.resolve(), signal, what)
    await failureOf(waitFor(Promise.reject(new Error('down')), signal, what))
    expect(getEventListeners(signal, 'abort')).toEqual([])
    const waiting = failureOf(waitFor(never, signal, what))
    expect(getEventListeners(signal, 'abort').length).toBe(1)
    controller.abort()
    await waiting
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('work that fails after it was given up is no unhandled rejection', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const work = Promise.withResolvers<never>()
    await failureOf(waitFor(work.promise, AbortSignal.abort(), what))
    work.reject(new Error('late'))
    await settle()
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('settledWithin', () => {
  it('says whether the work settled, well or badly', async () => {
    expect(await settledWithin(Promise.resolve(), 1_000)).toBe(true)
    expect(await settledWithin(Promise.reject(new Error('down')), 1_000)).toBe(true)
    expect(await settledWithin(never, 5)).toBe(false)
  })

  it('leaves no timer behind', async () => {
    const before = timeouts()
    await settledWithin(Promise.resolve(), 3_600_000)
    expect(timeouts()).toBe(before)
  })
})

describe('createDeadline', () => {
  it('counts down to nothing, and then fires', async () => {
    const deadline = createDeadline(30)
    expect(deadline.remainingMs()).toBeGreaterThan(0)
    expect(deadline.remainingMs()).toBeLessThanOrEqual(30)
    await new Promise((resolve) => deadline.signal.addEventListener('abort', resolve))
    // Two clocks: the timer may fire a fraction of a millisecond before the other one says so.
    expect(deadline.remainingMs()).toBeLessThanOrEqual(2)
  })

  it('keeps no process alive', () => {
    const before = timeouts()
    const deadline = createDeadline(3_600_000)
    expect(timeouts()).toBe(before)
    expect(deadline.signal.aborted).toBe(false)
  })
})
