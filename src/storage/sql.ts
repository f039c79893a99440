/**
 * A value that both engines store and return alike. Dates are strings in one canonical format; there are no booleans.
 * SQLite binds numbers as reals. So cast a parameter where its type is visible, for example in JSON or with `||`.
 * Columns of the schema convert values by themselves.
 */
export type Value = string | number | null

export type Row = readonly Value[]

/** Makes objects of rows: the names of their properties, in the order of the columns. */
export function recordOf<Item>(...names: readonly (keyof Item & string)[]): (row: Row) => Item {
  return row => {
    const item: Record<string, Value | undefined> = {}
    names.forEach((name, at) => {
      item[name] = row[at]
    })
    return item as Item
  }
}

/** An SQL statement. Its parameters are `$1`, `$2`, …; values are always bound, never inserted into the text. */
export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
  /** Set by a verb that does not use the rows. PostgreSQL then gets the statement together with the following one. */
  readonly queued?: boolean | undefined
  /**
   * The statement that the verb yields next, unless the rows of this one forbid it. PostgreSQL gets both in one round
   * trip. If the verb does not yield it, it was executed nevertheless: it must be a read, or the verb must roll back.
   */
  readonly next?: Statement | undefined
  /** Set if the bytes in the rows are for this caller alone, who frees them: those of a page of several parts. */
  readonly own?: boolean
}

/** The same statement, for a verb that does not use its rows. */
export function queued({ text, values }: Statement): Statement {
  return { text, values, queued: true }
}

/** Builds a statement from a template: sql`select name from users where id = ${id}`. */
export function sql(strings: TemplateStringsArray, ...values: Value[]): Statement {
  let text = texts.get(strings)
  if (text === undefined) {
    text = strings.reduce((joined, part, index) => `${joined}$${index}${part}`)
    texts.set(strings, text)
  }
  return { text, values }
}

// `strings` is the same object each time the same template literal runs, so each text is built only once.
const texts = new WeakMap<TemplateStringsArray, string>()
