import type { Slot, SlotValues } from '../../../core/selection.ts'
import { refusal } from '../../errors.ts'

/** A list with an offset: where its value is, and the limits of the lists around it, each of whose items has such a list. */
export interface Skip {
  readonly offset: Slot
  readonly around: readonly Slot[]
}

/** How many rows the lists of a plan skip at most, with these values. */
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

/** A row that is skipped is read nevertheless, and the cost of an operation says nothing about it. */
export function holdToSkippedRows(rows: number): void {
  if (rows <= mostSkippedRows) return
  const message = `The operation skips ${rows} rows; ${mostSkippedRows} are allowed.`
  throw refusal('BAD_USER_INPUT', message, { skipped: rows, limit: mostSkippedRows })
}
