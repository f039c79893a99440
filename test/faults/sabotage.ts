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

/** Two concurrent requests can both claim one key. */
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
 * PostgreSQL only: a payment waits up to half a second for another payment of the same amount, so that two payments
 * with one key overlap. Both hold a shared lock, by which they count each other.
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
