import type { Row, Value } from './sql.ts'

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
