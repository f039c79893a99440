/** A value that one client writes and many clients read. Each write is a larger number. */
export interface Register {
  readonly name: string
  write(value: number, client: number): Promise<void>
  read(client: number): Promise<number>
}

/** A read that returned an older value than one that was acknowledged before the read began. */
export interface StaleRead {
  readonly name: string
  readonly found: number
  readonly acknowledged: number
}

/**
 * Writes to all registers and reads them at the same time, on the connections of several clients. Returns the reads that
 * did not see a write which was acknowledged before they began.
 */
export async function staleReads(
  registers: readonly Register[],
  clients: number,
  writes: number,
): Promise<StaleRead[]> {
  const acknowledged = new Map<Register, number>()
  const stale: StaleRead[] = []
  let running = registers.length
  const writer = async (register: Register, index: number) => {
    for (let value = 1; value <= writes; value++) {
      await register.write(value, (index + value) % clients)
      acknowledged.set(register, value)
      // The next reads begin at once, on other connections.
      await Promise.all(Array.from({ length: clients }, (_, client) => check(register, client)))
    }
    running--
  }
  const check = async (register: Register, client: number) => {
    const known = acknowledged.get(register) ?? 0
    const found = await register.read(client)
    if (found < known) stale.push({ name: register.name, found, acknowledged: known })
  }
  const reader = async (client: number) => {
    while (running > 0) for (const register of registers) await check(register, client)
  }
  await Promise.all([...registers.map(writer), ...Array.from({ length: clients }, (_, client) => reader(client))])
  return stale
}
