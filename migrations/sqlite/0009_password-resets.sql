-- Requests for a new password. A row waits for its mail while `try_at` is set: a sender takes it by setting that to the
-- end of its lease. The secret of the latest mail is stored as its hash. A row names an e-mail that may be unknown: who
-- asks must not learn from the work whether a user has it.
create table password_resets (
  id integer primary key autoincrement,
  email_key text not null check (length(email_key) between 1 and 960),
  requested_at text not null check (length(requested_at) = 24),
  try_at text check (length(try_at) = 24),
  tries integer not null default 0,
  secret_hash text unique,
  expires_at text not null check (length(expires_at) = 24)
) strict;
create unique index password_resets_waiting on password_resets (email_key) where try_at is not null;
create index password_resets_by_try on password_resets (try_at) where try_at is not null;
create index password_resets_by_email on password_resets (email_key);
create index password_resets_by_expiry on password_resets (expires_at);

-- However a password or an e-mail changes, links that were sent before are no longer valid.
create trigger users_secured after update of login_key, password_hash on users
  when old.login_key is not new.login_key or old.password_hash is not new.password_hash begin
  delete from password_resets where email_key = old.login_key;
end;
create trigger users_gone after delete on users when old.login_key is not null begin
  delete from password_resets where email_key = old.login_key;
end;
