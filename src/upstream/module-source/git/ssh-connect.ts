import { connect } from 'node:net'

/*
 * What ssh runs in place of a connection of its own: it opens a tunnel through our proxy and joins it with its input
 * and output. Arguments: host, port. The proxy is in TERRAMIRROR_TUNNEL, as `user:password@host:port`.
 */
const [host, port] = process.argv.slice(2)
const [credentials = '', address = ''] = (process.env.TERRAMIRROR_TUNNEL ?? '').split('@')
const [proxyHost, proxyPort] = address.split(':')

const socket = connect(Number(proxyPort), proxyHost)
const login = Buffer.from(credentials).toString('base64')
socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\nProxy-Authorization: Basic ${login}\r\n\r\n`)
let answer = ''
socket.on('data', function onData(bytes) {
  answer += bytes.toString('latin1')
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return
  socket.off('data', onData)
  if (!/^HTTP\/1\.1 200 /.test(answer)) {
    process.stderr.write('the connection was refused by the mirror\n')
    process.exit(1)
  }
  process.stdout.write(Buffer.from(answer.slice(end + 4), 'latin1'))
  process.stdin.pipe(socket)
  socket.pipe(process.stdout)
})
socket.on('error', () => process.exit(1))
socket.on('close', () => process.exit(0))
