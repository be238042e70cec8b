import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { openListener } from '../src/listener.ts'

/** Far beyond the limit of a test: a stop that waits for it does not end. */
const GRACE_MS = 600_000

test.skipIf(process.platform !== 'linux')(
  'a stop ends also where one client port leads to two addresses of ours',
  async () => {
    const accepted: Socket[] = []
    const both = Promise.withResolvers<void>()
    const listener = await openListener({
      address: { host: '0.0.0.0', port: 0 },
      key: 'listen',
      identity: undefined,
      handle: (_, outgoing) => outgoing.end(),
      // As a front does with connections on which nothing came yet.
      accept: (socket) => {
        socket.on('error', () => undefined)
        if (accepted.push(socket) === 2) both.resolve()
      },
      onHandshakeFailure: () => undefined,
    })
    const from = { port: listener.port, localAddress: '127.0.0.1' }
    const first = connect({ ...from, host: '127.0.0.1' })
    await once(first, 'connect')
    const second = connect({ ...from, host: '127.0.0.2', localPort: first.localPort })
    await once(second, 'connect')
    try {
      await both.promise
      expect(new Set(accepted.map(({ remotePort }) => remotePort)).size).toBe(1)
      expect(accepted.map(({ localAddress }) => localAddress).toSorted()).toEqual(['127.0.0.1', '127.0.0.2'])
      await listener.close(GRACE_MS)
      expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true, true])
    } finally {
      for (const socket of [first, second]) socket.destroy()
    }
  },
)
