import { longFields } from '../../core/entities.ts'
import type { Selection, SlotValues, Wish } from '../../core/selection.ts'

/**
 * How much work a selection is at most, in units of about ten microseconds of SQLite: a row, a list, rows that are
 * skipped, and most of all texts, which can have 64 KiB each. Only the order of magnitude counts.
 */
export function weightOf({ wishes }: Pick<Selection, 'wishes'>, values: SlotValues): number {
  return wishes.reduce((sum, wish) => sum + weightOfWish(wish, values), 0)
}

/** Some milliseconds as a rule, and some tens of them where texts are long. */
export const heavy = 400

function weightOfWish(wish: Wish, values: SlotValues): number {
  switch (wish.kind) {
    case 'value':
      return longFields.has(wish.name) ? 20 : 0.1
    case 'one':
      return 1 + weightOf(wish, values)
    case 'many':
      return 3 + Number(values[wish.offset]) / 200 + Number(values[wish.limit]) * (1 + weightOf(wish, values))
    default:
      return 0
  }
}

/** How many long texts an answer may have at most. Fewer than some cannot be too much, and need no guard. */
export function mostLongTexts({ wishes }: Pick<Selection, 'wishes'>, values: SlotValues): number {
  let count = 0
  for (const wish of wishes) {
    if (wish.kind === 'value') count += longFields.has(wish.name) ? 1 : 0
    else if (wish.kind === 'one') count += mostLongTexts(wish, values)
    else if (wish.kind === 'many') count += Number(values[wish.limit]) * mostLongTexts(wish, values)
  }
  return count
}
