import type { Slot, SlotValues } from '../../../core/selection.ts'
import { refusal } from '../../errors.ts'

/**
 * A list with an offset: the slot of the offset, and the slots of the limits of the enclosing lists. The list is read
 * once for each item of these.
 */
export interface Skip {
  readonly offset: Slot
  readonly around: readonly Slot[]
}

/** The maximum number of rows that the lists of a plan skip with these values. */
export function skippedRows(skips: readonly Skip[], values: SlotValues): number {
  let sum = 0
  for (const { offset, around } of skips) {
    let rows = Number(values[offset])
    for (const limit of around) rows *= Number(values[limit])
    sum += rows
  }
  return sum
}

export const mostSkippedRows = 100_000

/** Limits skipped rows, because the database reads them too and the cost of an operation does not include them. */
export function checkSkippedRows(rows: number): void {
  if (rows <= mostSkippedRows) return
  const message = `The operation skips ${rows} rows; ${mostSkippedRows} are allowed.`
  throw refusal('BAD_USER_INPUT', message, { skipped: rows, limit: mostSkippedRows })
}
