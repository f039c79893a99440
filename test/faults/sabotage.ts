import type { TestDatabase } from '../support/engines.ts'
import { execute } from './execute.ts'

// Defects that a store must never have, put into the database of a test, to check that the fault tests detect them.

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

/** Two concurrent claims of one key both succeed. */
export function allowKeysTwice(database: TestDatabase): Promise<void> {
  return execute(database, 'drop index idempotency_keys_by_key')
}

/** PostgreSQL only: payments take a little longer, so that they overlap. */
export function slowPayments(database: TestDatabase, milliseconds: number): Promise<void> {
  return execute(
    database,
    `create function take_time() returns trigger language plpgsql as
     'begin perform pg_sleep(${milliseconds / 1000}); return new; end';
     create trigger slow before insert on payments for each row execute function take_time()`,
  )
}

/**
 * PostgreSQL only: a payment waits for half a second at most until another one of the same amount is under way, so that
 * two that pay for one key do meet. Both hold a shared lock, by which they count each other.
 */
export function letPaymentsMeet(database: TestDatabase): Promise<void> {
  return execute(
    database,
    `create function meet() returns trigger language plpgsql as $$
     begin
       perform pg_advisory_xact_lock_shared(new.amount_cents);
       for look in 1..100 loop
         exit when (select count(*) from pg_locks join pg_database on oid = database
                    where datname = current_database() and locktype = 'advisory' and objid = new.amount_cents) > 1;
         perform pg_sleep(0.005);
       end loop;
       return new;
     end $$;
     create trigger meet before insert on payments for each row execute function meet()`,
  )
}

/** PostgreSQL only: commits are acknowledged before they are durable. */
export function commitWithoutSync(database: TestDatabase): Promise<void> {
  return execute(
    database,
    `alter database ${new URL(database.location).pathname.slice(1)} set synchronous_commit = off`,
  )
}
