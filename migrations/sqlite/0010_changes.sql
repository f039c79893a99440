-- When a post or comment was last updated. Empty if it never was: filling the column would write every row.
alter table posts add column updated_at text check (length(updated_at) = 24);
alter table comments add column updated_at text check (length(updated_at) = 24);

-- New kinds of events. SQLite changes the constraints of a table only by building it anew.
create table outbox_rebuilt (
  id integer primary key autoincrement,
  kind text not null check (kind in ('post-added', 'post-updated', 'post-deleted', 'comment-added', 'comment-updated',
                                     'comment-deleted', 'user-revoked')),
  post_id integer,
  comment_id integer,
  user_id integer,
  created_at text not null check (length(created_at) = 24),
  traceparent text,
  check ((post_id is not null) = (kind <> 'user-revoked')),
  check ((comment_id is not null) = (kind in ('comment-added', 'comment-updated', 'comment-deleted'))),
  check ((user_id is not null) = (kind = 'user-revoked'))
) strict;
insert into outbox_rebuilt (id, kind, post_id, comment_id, user_id, created_at, traceparent)
  select id, kind, post_id, comment_id, user_id, created_at, traceparent from outbox;
-- Positions go on where they were, even if no event is left.
delete from sqlite_sequence where name = 'outbox_rebuilt';
insert into sqlite_sequence (name, seq) select 'outbox_rebuilt', seq from sqlite_sequence where name = 'outbox';
drop table outbox;
alter table outbox_rebuilt rename to outbox;

-- A subscriber that catches up reads the events of its topic alone.
create index outbox_new_posts on outbox (id) where kind = 'post-added';
create index outbox_changed_posts on outbox (kind, id)
  where kind in ('post-updated', 'post-deleted') and comment_id is null;
create index outbox_of_post_by_kind on outbox (post_id, kind, id) where kind <> 'post-added';
