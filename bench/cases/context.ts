import type { Starter } from '../core/contenders.ts'
import type { Generator } from '../core/generator.ts'
import type { Case, Pace, Result } from '../core/model.ts'
import type { Tokens } from '../core/tokens.ts'

/** What each part of the benchmark gets. */
export interface Context {
  readonly folder: string
  readonly generator: Generator
  readonly tokens: Tokens
  readonly pace: Pace
  /** The wanted ones of some cases, each with its wanted contenders only. */
  readonly choose: <Each extends Named>(cases: readonly Each[]) => readonly Each[]
  readonly starter: (stack: AsyncDisposableStack) => Starter
}

export type Named = Pick<Case, 'name' | 'contenders'>

/** Cases that share their servers. Those stop when it is done. */
export interface Part {
  readonly name: string
  /** All cases of the part, wanted or not. */
  readonly cases: (tokens: Tokens) => readonly Named[]
  readonly run: (context: Context) => Promise<readonly Result[]>
}
