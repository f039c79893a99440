-- Beside it: 0.1.0
-- The lower-cased name of every user, for finding users by the beginning of their names. The service makes it.
alter table users add column name_key text collate "C";

-- step: together
-- 0.1.0 writes none. Then these triggers do.
create function make_name_key() returns trigger language plpgsql as $$
begin
  new.name_key := case when octet_length(new.name) = length(new.name) then lower(new.name collate "C")
                       else replace(lower(new.name), 'ς', 'σ') end;
  return new;
end
$$;
create trigger users_added_without_name_key before insert on users
  for each row when (new.name_key is null) execute function make_name_key();
create trigger users_changed_without_name_key before update of name on users
  for each row when (new.name_key is not distinct from old.name_key
                     and lower(new.name collate "C") <> lower(old.name collate "C"))
  execute function make_name_key();

-- step: run mendNameKeys
-- step: alone
create index concurrently users_by_name on users (name_key, id);
create index concurrently users_admins on users (id) where role = 'admin';
-- All orders with a status, and the payments of a user, by id.
create index concurrently orders_of_status on orders (status, id);
create index concurrently payments_of_payer on payments (payer_id, id) where payer_id is not null;
drop index concurrently if exists payments_by_payer;
