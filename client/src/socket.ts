/** The part of `WebSocket` that the client uses. That of browsers, of Node and of `ws` have it. */
export interface Socket {
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number, reason?: string): void
}

export type SocketConstructor = new (url: string, protocol: string) => Socket
