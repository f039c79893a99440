import { catalogue } from '../../src/storage/verbs.ts'
import { assertLedger } from '../rest/ledger.ts'
import type { TestDatabase } from '../support/engines.ts'
import { type History, judge, type Verdict } from './history.ts'

/** Compares a history with the tables. If every payment has its key, the whole ledger must be consistent too. */
export async function judgeOn(database: TestDatabase, history: History): Promise<Verdict> {
  await using engine = database.open(catalogue)
  const verdict = await judge(history, engine)
  if (verdict.offences.keyless.length === 0) await assertLedger(engine)
  return verdict
}
