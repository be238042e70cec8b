import { describe, expect, it } from 'vitest'
import { Rounds, spreadOf } from './rounds.ts'
import { atLeast, atMost, below } from './row.ts'

describe('what is measured in rounds', () => {
  it('is compared round by round: a slow round of all candidates changes no ratio', () => {
    const rounds = new Rounds<'mirror' | 'peer'>()
    for (const speed of [100, 10, 1]) {
      rounds.add('peer', speed)
      rounds.add('mirror', speed / 2)
    }
    expect(rounds.ratio('mirror', 'peer')).toEqual({ median: 0.5, min: 0.5, max: 0.5 })
    expect(rounds.spread('peer')).toEqual({ median: 10, min: 1, max: 100 })
  })

  it('gives every candidate each place in the order', async () => {
    const order: string[] = []
    const candidate = (name: string) => async () => order.push(name)
    await Rounds.run(3, { a: candidate('a'), b: candidate('b'), c: candidate('c') })
    expect(order.join('')).toBe('abcbcacab')
  })

  it('has the mean of the middle two as its median, and none without numbers', () => {
    expect(spreadOf([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 })
    expect(() => spreadOf([])).toThrow('nothing was measured')
    expect(() => spreadOf([1, Number.NaN])).toThrow('nothing was measured')
  })

  it('meets a target by its median, the target itself included where it may', () => {
    const spread = { median: 0.6, min: 0.5, max: 0.7 }
    expect(atLeast('x', 0.6, spread)).toMatchObject({ met: true, measured: '0.60 x [0.50..0.70]' })
    expect(atLeast('x', 0.61, spread).met).toBe(false)
    expect(atMost('x', 0.6, spread).met).toBe(true)
    expect(atMost('x', 0.59, spread).met).toBe(false)
    expect(below('x', 0.6, 's', spread)).toMatchObject({ met: false, target: '< 0.6 s' })
  })
})
