import type { Starter } from '../core/contenders.ts'
import type { Generator } from '../core/generator.ts'
import type { Pace, Result } from '../core/model.ts'
import type { Tokens } from '../core/tokens.ts'

/** What each part of the benchmark gets. */
export interface Context {
  readonly folder: string
  readonly generator: Generator
  readonly tokens: Tokens
  readonly pace: Pace
  readonly isQuick: boolean
  /** Whether a case of this name is wanted. */
  readonly wants: (name: string) => boolean
  readonly starter: (stack: AsyncDisposableStack) => Starter
}

/** Cases that share their servers. Those stop when it is done. */
export interface Part {
  readonly name: string
  readonly run: (context: Context) => Promise<readonly Result[]>
}
