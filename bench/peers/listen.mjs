/** Listens on a free port of the loopback interface and prints the address, which the benchmark waits for. */
export function listen(server) {
  keepConnections(server)
  server.listen(0, '127.0.0.1', () => announce(server.address().port))
}

/** As long as Duet and Fastify do: of a thousand connections some wait longer than Node's five seconds for their turn. */
export function keepConnections(server) {
  server.keepAliveTimeout = 72_000
}

export function announce(port) {
  console.log(`http://127.0.0.1:${port}/health`)
}
