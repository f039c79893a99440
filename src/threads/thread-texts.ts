import { BroadcastChannel } from 'node:worker_threads'

type Text = readonly [hash: string, text: string, client: string]

/** Tells the other threads of this process the persisted queries that a client has sent to one of them. */
export class ThreadTexts implements Disposable {
  readonly #channel: BroadcastChannel

  constructor(name: string) {
    this.#channel = new BroadcastChannel(name)
    this.#channel.unref()
  }

  tell(...text: Text): void {
    this.#channel.postMessage(text)
  }

  listen(listener: (...text: Text) => void): void {
    this.#channel.onmessage = ({ data }: { readonly data: unknown }) => listener(...(data as Text))
  }

  [Symbol.dispose](): void {
    this.#channel.close()
  }
}
