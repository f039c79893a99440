/** Listens on a free port of the loopback interface and prints the address, which the benchmark waits for. */
export function listen(server) {
  server.listen(0, '127.0.0.1', () => announce(server.address().port))
}

export function announce(port) {
  console.log(`http://127.0.0.1:${port}/health`)
}
