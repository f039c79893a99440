import { type EntityName, entities, type Relation, roots } from '../../core/entities.ts'
import type { ManyWish, OneWish, Selection, Slot, Wish } from '../../core/selection.ts'
import { bounds } from '../engine.ts'
import { type Dialect, measuring, type Pair } from './dialect.ts'

/**
 * Writes the one statement that answers a selection with its finished JSON. Values are bound by their slots; keys, which
 * are names of GraphQL (letters, digits, underscores), are the only words of a client that get into the text.
 */
export function compile({ wishes }: Selection, dialect: Dialect): string {
  const compiler = new Compiler(dialect)
  return `select ${dialect.object(compiler.pairs(compiler.scope('Query'), wishes))}`
}

/** The same statement, giving null instead of JSON where the long texts alone are more than an answer may have. */
export function compileGuarded(selection: Selection, dialect: Dialect): string {
  const size = compile(selection, measuring(dialect))
  return `select case when (${size}) <= ${bounds.answerBytes} then (${compile(selection, dialect)}) end`
}

/** Columns have the names of fields, as SQL writes names. */
export function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/** A row that a part of the answer is made of: how it is called, which of its columns are used, who is joined to it. */
interface Scope {
  readonly entity: EntityName | 'Query'
  readonly alias: string
  readonly columns: Set<string>
  /** Of the whole FROM, shared by all rows that it joins. */
  readonly joins: string[]
  /** The rows joined to this one, by the relations that lead to them. SQLite joins at most 64. */
  readonly joined: Map<string, Scope>
}

class Compiler {
  readonly #dialect: Dialect
  #aliases = 0

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  pairs(scope: Scope, wishes: readonly Wish[]): Pair[] {
    return wishes.map(wish => [wish.key, this.#expression(scope, wish)])
  }

  scope(entity: EntityName | 'Query', joins: string[] = []): Scope {
    return { entity, alias: `t${++this.#aliases}`, columns: new Set(['id']), joins, joined: new Map() }
  }

  #expression(scope: Scope, wish: Wish): string {
    switch (wish.kind) {
      case 'value':
        return this.#value(scope, wish.name)
      case 'text':
        return this.#dialect.text(wish.text)
      case 'json':
        return this.#dialect.json(`$${wish.slot + 1}`)
      case 'empty':
        return this.#dialect.emptyList
      case 'one':
        return wish.id === undefined ? this.#related(scope, wish) : this.#byId(wish, wish.id)
      case 'many':
        return this.#many(scope, wish)
    }
  }

  #value({ entity, alias, columns }: Scope, name: string): string {
    const field = entity === 'Query' ? undefined : entities[entity].fields[name]
    if (field === undefined) throw new Error(`${entity} has no ${name}`)
    const column = columnOf(name)
    columns.add(column)
    // An id is a number inside and a text outside.
    if (field.type === 'id') return this.#dialect.id(`${alias}.${column}`)
    return field.long ? this.#dialect.longText(`${alias}.${column}`) : this.#dialect.value(`${alias}.${column}`)
  }

  #byId({ name, wishes }: OneWish, slot: Slot): string {
    const { to } = relationOf('Query', name)
    const scope = this.scope(to)
    const pairs = this.pairs(scope, wishes)
    const from = `${entities[to].collection} as ${scope.alias}${scope.joins.join('')}`
    return this.#dialect.one(pairs, `${from} where ${scope.alias}.id = $${slot + 1}`)
  }

  #related(parent: Scope, { name, wishes }: OneWish): string {
    const { to, by = '' } = relationOf(parent.entity, name)
    const table = entities[to].collection
    const column = columnOf(by)
    parent.columns.add(column)
    if (!this.#dialect.joins) {
      const scope = this.scope(to)
      const pairs = this.pairs(scope, wishes)
      return this.#dialect.one(pairs, `${table} as ${scope.alias} where ${scope.alias}.id = ${parent.alias}.${column}`)
    }
    // Every wish for the same relation is about the same row: one join serves them all.
    let scope = parent.joined.get(name)
    if (scope === undefined) {
      scope = this.scope(to, parent.joins)
      parent.joined.set(name, scope)
      parent.joins.push(` cross join ${table} as ${scope.alias} on ${scope.alias}.id = ${parent.alias}.${column}`)
    }
    return this.#dialect.object(this.pairs(scope, wishes))
  }

  /** Rows are found, ordered and cut to the page first, and only then anything is made of them. */
  #many(parent: Scope, wish: ManyWish): string {
    const { to, by, order = 'asc' } = relationOf(parent.entity, wish.name)
    const scope = this.scope(to)
    const pairs = this.pairs(scope, wish.wishes)
    const page = this.#dialect.page({
      table: entities[to].collection,
      columns: scope.columns,
      owner: by === undefined ? undefined : [columnOf(by), `${parent.alias}.id`],
      published: publishedIn(wish),
      order,
      limit: `$${wish.limit + 1}`,
      offset: `$${wish.offset + 1}`,
    })
    const sorted = page.sorting.map(column => `${scope.alias}.${column} ${order}`).join(', ')
    return this.#dialect.many(pairs, `${page.rows} as ${scope.alias}${scope.joins.join('')}`, sorted)
  }
}

function relationOf(entity: EntityName | 'Query', name: string): Relation {
  const relation = (entity === 'Query' ? roots : entities[entity].relations)[name]
  if (relation === undefined) throw new Error(`${entity} has no ${name}`)
  return relation
}

function publishedIn({ after, before }: ManyWish): readonly string[] {
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`published_at > $${after + 1}`)
  if (before !== undefined) conditions.push(`published_at < $${before + 1}`)
  return conditions
}
