-- Beside it: 0.1.0. The triggers do what it does not know of.
-- Requests for a new password. A row waits for its mail while `try_at` is set: a sender takes it by setting that to the
-- end of its lease. The secret of the latest mail is stored as its hash. A row names an e-mail that may be unknown: who
-- asks must not learn from the work whether a user has it.
create table password_resets (
  id bigint generated always as identity primary key,
  email_key text collate "C" not null check (length(email_key) between 1 and 960),
  requested_at instant not null,
  try_at instant,
  tries integer not null default 0,
  secret_hash text collate "C" unique,
  expires_at instant not null
);
create unique index password_resets_waiting on password_resets (email_key) where try_at is not null;
create index password_resets_by_try on password_resets (try_at) where try_at is not null;
create index password_resets_by_email on password_resets (email_key);
create index password_resets_by_expiry on password_resets (expires_at);

-- step: together
-- However a password or an e-mail changes, links that were sent before are no longer valid.
create function end_password_resets() returns trigger language plpgsql as $$
begin
  delete from password_resets where email_key = old.login_key;
  return null;
end
$$;
create trigger users_secured after update of login_key, password_hash on users for each row
  when (old.login_key is distinct from new.login_key or old.password_hash is distinct from new.password_hash)
  execute function end_password_resets();
create trigger users_gone after delete on users for each row
  when (old.login_key is not null) execute function end_password_resets();
