import type { TestDatabase } from '../support/engines.ts'
import { execute } from './execute.ts'

// Defects that a store must never have. Tests add them to a database to check that the fault tests detect them.

/** Payments are stored without their keys. */
export function forgetKeys(database: TestDatabase): Promise<void> {
  return execute(
    database,
    database.kind === 'sqlite'
      ? `create trigger forget_keys after insert on idempotency_keys
         begin delete from idempotency_keys where id = new.id; end`
      : `create function forget_key() returns trigger language plpgsql as 'begin return null; end';
         create trigger forget_keys before insert on idempotency_keys for each row execute function forget_key()`,
  )
}
