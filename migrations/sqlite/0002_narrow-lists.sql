-- Lists of all posts and of all users skip rows here: in the tables themselves a row takes up to 64 KiB.
create index posts_by_id on posts (id);
create index users_by_id on users (id);
