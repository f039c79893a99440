import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import {
  type Duet,
  type DuetError,
  graphql,
  type LiveState,
  live,
  operation,
  type Schema,
  type Selected,
  type Selection,
  type Session,
} from './index.ts'
import type { Known } from './selection.ts'

/** The current session. The component is rendered again when somebody signs in or out, or the token is renewed. */
export function useSession(duet: Duet): Session | undefined {
  return useSyncExternalStore(duet.onSession, () => duet.session, nobody)
}

export interface Reading<Data> {
  /** What was read last. It stays while it is read again, and if that fails. */
  readonly data: Data | undefined
  /** Why the last attempt failed, if it did. */
  readonly error: Error | undefined
  readonly isLoading: boolean
  /** Reads again. It never changes, so it can be a dependency. While something is read, it waits for the end of that. */
  readonly refetch: () => void
}

/** Reads the selected fields when the component appears, when the selection changes, and for each user who signs in. */
export function useQuery<const S extends Selection<Schema.Query>>(
  duet: Duet,
  selection: Known<Schema.Query, S>,
): Reading<Selected<Schema.Query, S>> {
  const { text, variables } = operation('Query', selection)
  return useRead(duet, [text, variables], signal => graphql(duet).query(text, variables, { signal }))
}

/** Like `useQuery`, for any function that reads. It is called again when the key changes. */
export function useRead<Data>(duet: Duet, key: unknown, read: (signal: AbortSignal) => Promise<Data>): Reading<Data> {
  const id = JSON.stringify([key, useSession(duet)?.userId])
  const [last, setLast] = useState<Partial<Reading<Data>> & { readonly duet?: Duet; readonly id?: string }>({})
  const current = useRef<() => unknown>(() => {})
  const refetch = useCallback(() => void current.current(), [])

  useEffect(() => {
    const stop = new AbortController()
    const tell = (part: Partial<Reading<Data>>) => {
      if (!stop.signal.aborted) setLast(old => ({ ...(old.duet === duet && old.id === id && old), duet, id, ...part }))
    }
    let isReading = false
    let isWanted = false
    // One at a time, so that no answer overtakes a later one, and events that come quickly do not become as many requests.
    current.current = async () => {
      isWanted = true
      if (isReading) return
      isReading = true
      tell({ isLoading: true })
      while (isWanted && !stop.signal.aborted) {
        isWanted = false
        try {
          tell({ data: await read(stop.signal), error: undefined, isLoading: isWanted })
        } catch (error) {
          tell({ error: error as Error, isLoading: isWanted })
        }
      }
      isReading = false
    }
    current.current()
    return () => stop.abort()
  }, [duet, id])

  const { data, error, isLoading = true } = last.duet === duet && last.id === id ? last : {}
  return { data, error, isLoading, refetch }
}

/**
 * Calls `onChange` with the selected fields of each event, and without them when the current state must be read: when the
 * subscription has begun, when events may be missing, and when it has ended. `refetch` of `useQuery` is such a function.
 */
export function useLive<const S extends Selection<Schema.Subscription>>(
  duet: Duet,
  selection: Known<Schema.Subscription, S>,
  onChange: (data?: Selected<Schema.Subscription, S>) => void,
): LiveState & { readonly error: DuetError | undefined } {
  const { text, variables } = operation('Subscription', selection)
  const id = JSON.stringify([text, variables, useSession(duet)?.userId])
  const [failed, setFailed] = useState<{ readonly id: string; readonly error: DuetError }>()
  const { onState } = live(duet)
  const state = useSyncExternalStore(onState, () => live(duet).state, idle)
  const latest = useRef(onChange)
  useEffect(() => {
    latest.current = onChange
  })

  useEffect(() => {
    const readAnew = () => latest.current()
    const subscription = live(duet).subscribe<Selected<Schema.Subscription, S>>(text, variables, {
      onData: data => latest.current(data),
      onReadAnew: readAnew,
      onEnd: readAnew,
      onError: error => setFailed({ id, error }),
    })
    return () => {
      subscription.close()
      setFailed(undefined)
    }
  }, [duet, id])

  return { ...state, error: failed?.id === id ? failed.error : undefined }
}

/** On a server, and for the first rendering of what it has rendered. */
const nobody = () => undefined
const notConnected: LiveState = { state: 'idle' }
const idle = () => notConnected
