-- The lower-cased e-mail of every user, for finding users by e-mail. It is not unique: only users who can log in have
-- e-mails of their own. SQLite lower-cases ASCII only; src/storage/migrate.ts fills the other rows.
alter table users add column email_key text;
update users set email_key = lower(email) where octet_length(email) = length(email);
create index users_by_email on users (email_key, id);

create index orders_by_status on orders (status, user_id, id);
