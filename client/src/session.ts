/** Where a token is kept between visits. */
export interface TokenStorage {
  get(): string | null | undefined
  /** `undefined` deletes it. */
  set(token: string | undefined): void
}

export interface Session {
  readonly userId: number
  readonly role: string
  /** When the present token expires, in milliseconds since 1970. It is renewed before. */
  readonly expiresAt: number
}

export type SessionChange = 'signedIn' | 'renewed' | 'signedOut' | 'ended'

/** Keeps the token in `localStorage` or `sessionStorage`. */
export function keepIn(
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>,
  name = 'duet-token',
): TokenStorage {
  return {
    get: () => storage.getItem(name),
    set: token => (token === undefined ? storage.removeItem(name) : storage.setItem(name, token)),
  }
}
