/**
 * A value that both engines store and return alike. Dates are canonical text, booleans do not occur. SQLite binds numbers
 * as reals: cast a parameter where its type shows, as in JSON or `||`; columns of the schema convert by themselves.
 */
export type Value = string | number | null

export type Row = readonly Value[]

/** One statement: its parameters are `$1`, `$2`, … and its values are always bound, never spliced into the text. */
export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
  /** Whether it may take long, as far as can be told before it is run. */
  readonly heavy?: boolean
}

/** Writes a statement with its values in place: sql`select name from users where id = ${id}`. */
export function sql(strings: TemplateStringsArray, ...values: Value[]): Statement {
  let text = texts.get(strings)
  if (text === undefined) {
    text = strings.reduce((joined, part, index) => `${joined}$${index}${part}`)
    texts.set(strings, text)
  }
  return { text, values }
}

// A template's strings are one object per place in the source, so each text is put together once.
const texts = new WeakMap<TemplateStringsArray, string>()
