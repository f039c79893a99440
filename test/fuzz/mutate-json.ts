import { depthOf, interestingNumbers, interestingText, names } from './interesting.ts'
import { mutateGraphQL } from './mutate-graphql.ts'
import type { Random } from './random.ts'

/** JSON as text, not as JavaScript values: it can have duplicate keys and numbers of any size. */
type Json = string | number | boolean | null | Literal | List | Fields

class Literal {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

class List {
  readonly items: Json[]
  constructor(items: Json[]) {
    this.items = items
  }
}

class Fields {
  readonly entries: Entry[]
  constructor(entries: Entry[]) {
    this.entries = entries
  }
}

/** Changes one value in a JSON text. */
export function mutateJson(text: string, random: Random): string {
  const root = new List([jsonOf(JSON.parse(text))])
  const place = random.pick(placesIn(root))
  place.replace(replacementsFor(place, random))
  return root.items.map(written).join('')
}

type Entry = [key: string, value: Json]

interface Place {
  readonly key: string
  readonly value: Json
  /** Replaces the value by these entries. In a list, their keys are ignored. */
  replace(entries: readonly Entry[]): void
}

function placesIn(container: List | Fields): readonly Place[] {
  const own =
    container instanceof List
      ? container.items.map((value, at): Place => {
          const replace = (entries: readonly Entry[]) => {
            container.items.splice(at, 1, ...entries.map(([, item]) => item))
          }
          return { key: 'x', value, replace }
        })
      : container.entries.map(([key, value], at): Place => {
          const replace = (entries: readonly Entry[]) => {
            container.entries.splice(at, 1, ...entries)
          }
          return { key, value, replace }
        })
  return own.flatMap(place => {
    const { value } = place
    return value instanceof List || value instanceof Fields ? [place, ...placesIn(value)] : [place]
  })
}

function replacementsFor({ key, value }: Place, random: Random): readonly Entry[] {
  if (key === 'query' && typeof value === 'string' && random.chance(0.8)) return [[key, mutateGraphQL(value, random)]]
  switch (random.below(10)) {
    case 0:
      return [[key, interestingText(random)]]
    case 1:
      return [[key, new Literal(random.pick(interestingNumbers))]]
    case 2:
      return [
        [key, random.pick<Json>([null, true, false, new List([]), new Fields([]), new Literal('{"toString":null}')])],
      ]
    case 3:
    case 4:
      return [[key, nested(value, random)]]
    case 5:
      return [[key, typeof value === 'string' ? edited(value, random) : new List([value])]]
    case 6:
      return []
    case 7:
      return [
        [key, value],
        [key, random.chance(0.5) ? value : interestingText(random)],
      ]
    case 8:
      return [[random.pick(names), value]]
    default:
      return [
        [key, value],
        [random.pick(names), random.pick<Json>([1, 'x', null, new Literal('{"a":1}')])],
      ]
  }
}

function nested(value: Json, random: Random): Literal {
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['[[],', ']'],
  ] as const)
  const depth = depthOf(random)
  return new Literal(`${open.repeat(depth)}${written(value)}${close.repeat(depth)}`)
}

function edited(text: string, random: Random): string {
  const at = random.below(text.length + 1)
  return `${text.slice(0, at)}${interestingText(random)}${text.slice(at + random.below(2))}`
}

function jsonOf(value: unknown): Json {
  if (Array.isArray(value)) return new List(value.map(jsonOf))
  if (typeof value === 'object' && value !== null) {
    return new Fields(Object.entries(value).map(([key, inner]) => [key, jsonOf(inner)]))
  }
  return value as Json
}

function written(value: Json): string {
  if (value instanceof Literal) return value.text
  if (value instanceof List) return `[${value.items.map(written).join(',')}]`
  if (value instanceof Fields) {
    return `{${value.entries.map(([key, inner]) => `${JSON.stringify(key)}:${written(inner)}`).join(',')}}`
  }
  return JSON.stringify(value)
}
