-- Beside it: 0.1.0
-- The lower-cased e-mail of every user, for finding users by e-mail. It is not unique: only users who can log in have
-- e-mails of their own. The service makes it. What `lower` makes of other letters than those of ASCII depends on the
-- database's locale.
alter table users add column email_key text collate "C";

-- step: together
-- 0.1.0 writes none. Then these triggers do.
create function make_email_key() returns trigger language plpgsql as $$
begin
  new.email_key := case when octet_length(new.email) = length(new.email) then lower(new.email collate "C")
                        else lower(new.email) end;
  return new;
end
$$;
create trigger users_added_without_key before insert on users
  for each row when (new.email_key is null) execute function make_email_key();
create trigger users_changed_without_key before update of email on users
  for each row when (new.email_key is not distinct from old.email_key
                     and lower(new.email collate "C") <> lower(old.email collate "C"))
  execute function make_email_key();

-- step: run mendEmailKeys
-- step: alone
create index concurrently users_by_email on users (email_key, id);
-- The status comes first, so that PostgreSQL cannot take `orders_by_user` instead and sort all orders of a user.
create index concurrently orders_by_status on orders (status, user_id, id);
