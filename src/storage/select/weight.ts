import { longFields } from '../../core/entities.ts'
import type { SelectedField, SelectedList, Selection, SlotValues } from '../../core/selection.ts'

/**
 * An upper estimate of the work for a selection, in units of about ten microseconds. It counts rows, lists, skipped rows
 * and most of all long texts, which can have 64 KiB each. Only the order of magnitude matters.
 */
export function weightOf(selection: Pick<Selection, 'fields'>, values: SlotValues): number {
  return weightOfRows(selection, values) + longText * mostLongTexts(selection, values)
}

/** The same estimate without the long texts: what a selection costs even if all texts are short. */
export function weightOfRows({ fields }: Pick<Selection, 'fields'>, values: SlotValues): number {
  return fields.reduce((sum, field) => sum + weightOfField(field, values), 0)
}

/** Selections above this weight are slow: some milliseconds, and some tens of milliseconds with long texts. */
export const heavy = 400

/** The weight of a text of the maximum length. */
export const longText = 20

function weightOfField(field: SelectedField, values: SlotValues): number {
  switch (field.kind) {
    case 'value':
      return 0.1
    case 'one':
      return 0.3 + weightOfRows(field, values)
    case 'many':
      return 3 + skippedBy(field, values) / 200 + Number(values[field.limit]) * (0.3 + weightOfRows(field, values))
    default:
      return 0
  }
}

/** A list that begins after an id skips no rows. */
function skippedBy({ offset }: SelectedList, values: SlotValues): number {
  return offset === undefined ? 0 : Number(values[offset])
}

/** The maximum number of long texts in an answer. A few of them cannot exceed the size limit and need no guard. */
export function mostLongTexts({ fields }: Pick<Selection, 'fields'>, values: SlotValues): number {
  let count = 0
  for (const field of fields) {
    if (field.kind === 'value') count += longFields.has(field.name) ? 1 : 0
    else if (field.kind === 'one') count += mostLongTexts(field, values)
    else if (field.kind === 'many') count += Number(values[field.limit]) * mostLongTexts(field, values)
  }
  return count
}
