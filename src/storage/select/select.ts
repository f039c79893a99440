import { type EntityName, entities, type Relation, roots } from '../../core/entities.ts'
import type { SelectedField, SelectedList, SelectedObject, Selection } from '../../core/selection.ts'
import { updatedAtOf } from '../updated-at.ts'
import type { Dialect, Pair } from './dialect.ts'
import { orderBy, type PageStart } from './page.ts'

/**
 * Compiles a selection to the one statement that returns the finished JSON. Values are bound by their slots. The keys
 * are the only input of a client in the SQL text; they are GraphQL names (letters, digits, underscores).
 */
export function compile({ fields }: Selection, dialect: Dialect): string {
  const compiler = new Compiler(dialect)
  return dialect.statement(dialect.object(compiler.pairs(compiler.scope('Query'), fields)))
}

/** A column has the name of its field, in snake case. */
export function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/** A row that a part of the answer is built from: its alias, the columns that are used, and the rows joined to it. */
interface Scope {
  readonly entity: EntityName | 'Query'
  readonly alias: string
  readonly columns: Set<string>
  /** The joins of the whole FROM clause, shared by all rows in it. */
  readonly joins: string[]
  /** The rows joined to this one, by the name of the relation. SQLite allows at most 64 tables in a join. */
  readonly joined: Map<string, Scope>
}

class Compiler {
  readonly #dialect: Dialect
  #aliases = 0

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  pairs(scope: Scope, fields: readonly SelectedField[]): Pair[] {
    return fields.map(field => [field.key, this.#expression(scope, field)])
  }

  scope(entity: EntityName | 'Query', joins: string[] = []): Scope {
    return { entity, alias: `t${++this.#aliases}`, columns: new Set(['id']), joins, joined: new Map() }
  }

  #expression(scope: Scope, field: SelectedField): string {
    switch (field.kind) {
      case 'value':
        return this.#value(scope, field.name)
      case 'text':
        return this.#dialect.text(field.text)
      case 'json':
        return this.#dialect.json(`$${field.slot + 1}`)
      case 'empty list':
        return this.#dialect.emptyList
      case 'one':
        if (field.id === undefined) return this.#related(scope, field)
        return this.#byId(relationOf('Query', field.name).to, field.fields, `$${field.id + 1}`)
      case 'many':
        return this.#many(scope, field)
    }
  }

  #value({ entity, alias, columns }: Scope, name: string): string {
    const field = entity === 'Query' ? undefined : entities[entity].fields[name]
    if (field === undefined) throw new Error(`${entity} has no field ${name}`)
    const column = (name: string) => {
      columns.add(columnOf(name))
      return `${alias}.${columnOf(name)}`
    }
    const value = field.or === undefined ? column(name) : updatedAtOf(column(name), column(field.or))
    return this.#dialect.value(value, field)
  }

  /** An object made of the row with this id. */
  #byId(entity: EntityName, fields: readonly SelectedField[], id: string): string {
    const scope = this.scope(entity)
    const pairs = this.pairs(scope, fields)
    const from = `${entities[entity].collection} as ${scope.alias}${scope.joins.join('')}`
    return this.#dialect.one(pairs, `${from} where ${scope.alias}.id = ${id}`)
  }

  #related(parent: Scope, { name, fields }: SelectedObject): string {
    const { to, by = '' } = relationOf(parent.entity, name)
    const id = `${parent.alias}.${columnOf(by)}`
    parent.columns.add(columnOf(by))
    if (!this.#dialect.joins) return this.#byId(to, fields, id)
    // All selected fields of the same relation refer to the same row, so they share one join.
    let scope = parent.joined.get(name)
    if (scope === undefined) {
      scope = this.scope(to, parent.joins)
      parent.joined.set(name, scope)
      parent.joins.push(` cross join ${entities[to].collection} as ${scope.alias} on ${scope.alias}.id = ${id}`)
    }
    return this.#dialect.object(this.pairs(scope, fields))
  }

  /** First selects, sorts and limits the rows of the page. Only then builds JSON from them. */
  #many(parent: Scope, field: SelectedList): string {
    const { to, by, order = 'asc' } = relationOf(parent.entity, field.name)
    const scope = this.scope(to)
    const pairs = this.pairs(scope, field.fields)
    const page = this.#dialect.page({
      table: entities[to].collection,
      columns: scope.columns,
      equal: by === undefined ? [] : [[columnOf(by), `${parent.alias}.id`]],
      published: publishedIn(field),
      order,
      limit: `$${field.limit + 1}`,
      ...startOf(field),
    })
    const sorted = orderBy(page.sorting, order, scope.alias)
    return this.#dialect.many(pairs, `${page.rows} as ${scope.alias}${scope.joins.join('')}`, sorted)
  }
}

function relationOf(entity: EntityName | 'Query', name: string): Relation {
  const relation = (entity === 'Query' ? roots : entities[entity].relations)[name]
  if (relation === undefined) throw new Error(`${entity} has no relation ${name}`)
  return relation
}

function startOf({ offset, after }: SelectedList): PageStart {
  if (after !== undefined) return { after: `$${after + 1}` }
  if (offset !== undefined) return { offset: `$${offset + 1}` }
  throw new Error('A list needs an offset or an id after which it begins')
}

function publishedIn({ publishedAfter, publishedBefore }: SelectedList): readonly string[] {
  const conditions: string[] = []
  if (publishedAfter !== undefined) conditions.push(`published_at > $${publishedAfter + 1}`)
  if (publishedBefore !== undefined) conditions.push(`published_at < $${publishedBefore + 1}`)
  return conditions
}
