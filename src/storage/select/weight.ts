import { longFields } from '../../core/entities.ts'
import type { Selection, SlotValues, Wish } from '../../core/selection.ts'

/**
 * An upper estimate of the work for a selection, in units of about ten microseconds in SQLite. It counts rows, lists,
 * skipped rows and most of all long texts, which can have 64 KiB each. Only the order of magnitude matters.
 */
export function weightOf({ wishes }: Pick<Selection, 'wishes'>, values: SlotValues): number {
  return wishes.reduce((sum, wish) => sum + weightOfWish(wish, values), 0)
}

/** Selections above this weight are slow: some milliseconds, and some tens of milliseconds with long texts. */
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

/** The maximum number of long texts in an answer. A few of them cannot exceed the size limit and need no guard. */
export function mostLongTexts({ wishes }: Pick<Selection, 'wishes'>, values: SlotValues): number {
  let count = 0
  for (const wish of wishes) {
    if (wish.kind === 'value') count += longFields.has(wish.name) ? 1 : 0
    else if (wish.kind === 'one') count += mostLongTexts(wish, values)
    else if (wish.kind === 'many') count += Number(values[wish.limit]) * mostLongTexts(wish, values)
  }
  return count
}
