-- The lower-cased e-mail of every user, for finding users by e-mail. It is not unique: only users who can log in have
-- e-mails of their own. What `lower` makes of other letters than those of ASCII depends on the database's locale;
-- src/storage/migrate.ts fills the rows that have some.
alter table users add column email_key text collate "C";
update users set email_key = lower(email collate "C") where octet_length(email) = length(email);
create index users_by_email on users (email_key, id);

-- The status comes first, so that PostgreSQL cannot take `orders_by_user` instead and sort all orders of a user.
create index orders_by_status on orders (status, user_id, id);
