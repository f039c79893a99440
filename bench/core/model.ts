import type { BenchServer } from './server.ts'

/** A running server under a name that the report uses. */
export interface Contender {
  readonly name: string
  readonly server: BenchServer
  /** Processes of its database, whose CPU is counted apart. */
  readonly database?: () => readonly number[]
}

/** What is measured: the same requests to each of some contenders. */
export interface Case {
  readonly name: string
  /** What a reader of the report sees. */
  readonly title: string
  readonly connections: number
  /** The names of contenders. The first is the base of all ratios. */
  readonly contenders: readonly string[]
  /** The requests, in the order in which they are sent, again from the start after the last. Asked before every slice. */
  readonly requests: (contender: Contender) => Promise<readonly string[]> | readonly string[]
  /** An earlier case with the same operation, which has warmed up its code. A short warm-up is enough after it. */
  readonly warmedBy?: string
  /** Ends a slice when each request was sent once. */
  readonly once?: boolean
  /** What must be equal of the answers of all contenders. The answer itself, if not given. */
  readonly essence?: (status: number, body: string) => unknown
  /** Said in the report below the figures. */
  readonly note?: string | undefined
}

/** One contender in one case in one round. */
export interface Sample {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server's CPU for one request. */
  readonly cpu: number
  /** Microseconds of the database's CPU for one request; 0 where the database is part of the server. */
  readonly databaseCpu: number
  /** Bytes that the server holds at the end. */
  readonly memory: number
  /** The share of one core that the load process used. */
  readonly loadShare: number
}

/** The samples of one contender in one case, one of each round. */
export interface Series {
  readonly name: string
  readonly samples: readonly Sample[]
}

export interface Result {
  readonly name: string
  readonly title: string
  readonly note?: string | undefined
  /** What one "request" is, where it is not a request. */
  readonly unit?: string | undefined
  /** The first is the base of all ratios. */
  readonly series: readonly Series[]
}

export interface Pace {
  /** Every case gets the least. Those whose ratios are still uncertain get more, as long as there is time. */
  readonly rounds: { readonly least: number; readonly most: number }
  /** After this, in milliseconds of `performance.now()`, there are no more rounds than the least. */
  readonly deadline: number
  readonly sliceMs: number
  /** Before each slice, because connections are new in it. */
  readonly settleMs: number
  readonly warm: WarmUp
  /** Events times sockets in one slice of a case of subscriptions. */
  readonly deliveries: number
}

/**
 * Before the first round, for each server in each case: at least so many answers, and further until CPU per request
 * falls no more, but no longer than the server has used so much CPU. Time would mean less on a machine with other work.
 */
export interface WarmUp {
  readonly answers: number
  readonly mostCpuMs: number
}

/** Makes the requests once for each contender. */
export function onceFor(make: Case['requests']): Case['requests'] {
  const made = new Map<string, ReturnType<Case['requests']>>()
  return contender => {
    const known = made.get(contender.name) ?? make(contender)
    made.set(contender.name, known)
    return known
  }
}
