-- The lower-cased e-mail of every user, for finding users by e-mail. It is not unique: only users who can log in have
-- e-mails of their own. The service makes it: SQLite lower-cases ASCII only.
alter table users add column email_key text;

-- step: run mendEmailKeys
-- step: together
create index users_by_email on users (email_key, id);
create index orders_by_status on orders (status, user_id, id);
