-- All orders with a status, by id. SQLite has the id in every index: `payments_by_payer` lists payments as it is.
create index orders_of_status on orders (status, id);
create index users_admins on users (id) where role = 'admin';
-- The lower-cased name of every user, for finding users by the beginning of their names. The service makes it.
alter table users add column name_key text;

-- step: run mendNameKeys
-- step: together
create index users_by_name on users (name_key, id);
