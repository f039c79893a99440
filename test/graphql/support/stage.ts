import { Access } from '../../../src/core/access.ts'
import { type Actor, anonymous } from '../../../src/core/actor.ts'
import { Posts } from '../../../src/core/posts/operations.ts'
import { answerText } from '../../../src/core/selection.ts'
import { MemoryEventBus } from '../../../src/events/memory-event-bus.ts'
import { Executor } from '../../../src/graphql/execute.ts'
import { Documents } from '../../../src/graphql/language/documents.ts'
import { loadSchema } from '../../../src/graphql/language/schema.ts'
import { AutomaticDocuments } from '../../../src/graphql/persisted/automatic.ts'
import type { Engine } from '../../../src/storage/engine.ts'
import { createStore } from '../../../src/storage/store.ts'
import type { verbs as realVerbs } from '../../../src/storage/verbs.ts'
import type { EngineKind, OpenOptions, TestDatabase } from '../../support/engines.ts'
import { type Data, insertsOf, tokenVersionOf } from './data.ts'
import { catalogue, type verbs } from './planting-verbs.ts'

/** A database with test data, and the real code path from the text of an operation to that database. */
export class Stage implements AsyncDisposable {
  readonly database: TestDatabase
  readonly engine: Engine<typeof verbs>

  static async open(kind: EngineKind, options?: OpenOptions): Promise<Stage> {
    return new Stage(await kind.create(), options)
  }

  private constructor(database: TestDatabase, options: OpenOptions | undefined) {
    this.database = database
    this.engine = database.open(catalogue, options)
  }

  async insert(data: Data): Promise<void> {
    await this.engine.write('run', insertsOf(data, this.database.kind))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine[Symbol.asyncDispose]()
    await this.database[Symbol.asyncDispose]()
  }
}

const schema = loadSchema()

export type Service = (text: string, variables?: Readonly<Record<string, unknown>>, actor?: Actor) => Promise<string>

/** All parts of the service between HTTP and the engine, connected as in the app. */
export function serviceOver(engine: Engine<typeof realVerbs>, maxComplexity = 1000): Service {
  const posts = new Posts({ store: createStore(engine), access: new Access('open'), bus: new MemoryEventBus() })
  const documents = new AutomaticDocuments(new Documents({ schema, maxDepth: 5, suggestions: true }))
  const executor = new Executor({ schema, documents, posts, maxComplexity })
  return async (query, variables = {}, actor = anonymous) =>
    answerText(
      await executor.execute(executor.prepare({ query, operationName: undefined, variables }), variables, actor),
    )
}

/** The actor with a token of this user. */
export function actorOf(id: number, role: 'member' | 'admin' = 'member'): Actor {
  return { kind: 'user', id, role, tokenVersion: tokenVersionOf(id) }
}
