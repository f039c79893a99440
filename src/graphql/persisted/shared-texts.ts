export interface SharedTextsBounds {
  readonly bytes: number
  readonly bytesPerClient: number
}

/**
 * An LRU cache of texts that all clients may read. A client that adds more than its share replaces only its own texts,
 * so that it cannot drop those of all others.
 */
export class SharedTexts {
  readonly #bounds: SharedTextsBounds
  /** Both maps have the least recently used first. */
  readonly #texts = new Map<string, Entry>()
  readonly #shares = new Map<string, Share>()
  #bytes = 0

  constructor(bounds: SharedTextsBounds) {
    this.#bounds = bounds
  }

  get(key: string): string | undefined {
    const entry = this.#texts.get(key)
    if (entry === undefined) return undefined
    const { text, client } = entry
    this.#texts.delete(key)
    this.#texts.set(key, entry)
    const keys = this.#shares.get(client)?.keys
    keys?.delete(key)
    keys?.add(key)
    return text
  }

  /** Adds a text. It belongs to the share of this client, also when others use it. */
  set(key: string, text: string, client: string): void {
    const weight = weightOf(text)
    const { bytes, bytesPerClient } = this.#bounds
    if (weight > bytesPerClient) return
    this.#delete(key)
    let share = this.#shares.get(client)
    while (share !== undefined && share.bytes + weight > bytesPerClient) {
      this.#delete(first(share.keys))
      share = this.#shares.get(client)
    }
    while (this.#bytes + weight > bytes && this.#texts.size > 0) this.#delete(first(this.#texts))
    share = this.#shares.get(client) ?? { keys: new Set(), bytes: 0 }
    this.#shares.set(client, share)
    share.keys.add(key)
    share.bytes += weight
    this.#bytes += weight
    this.#texts.set(key, { text, client })
  }

  #delete(key: string): void {
    const entry = this.#texts.get(key)
    if (entry === undefined) return
    const weight = weightOf(entry.text)
    this.#texts.delete(key)
    this.#bytes -= weight
    const share = this.#shares.get(entry.client)
    if (share === undefined) return
    share.keys.delete(key)
    share.bytes -= weight
    if (share.keys.size === 0) this.#shares.delete(entry.client)
  }
}

interface Entry {
  readonly text: string
  readonly client: string
}

interface Share {
  readonly keys: Set<string>
  bytes: number
}

/** The memory of a text and of what is kept beside it. */
function weightOf(text: string): number {
  return 2 * text.length + bytesPerEntry
}

const bytesPerEntry = 500

function first(keys: { keys(): Iterator<string> }): string {
  return String(keys.keys().next().value)
}
