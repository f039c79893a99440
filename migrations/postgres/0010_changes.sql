-- Beside it: 0.1.0. It updates neither posts nor comments, and passes over events of kinds that it does not know.
-- When a post or comment was last updated. Empty if it never was: filling the column would write every row,
-- and so would a column of the type `instant`, to check it.
alter table posts add column updated_at text collate "C";
alter table posts add constraint posts_updated_at_check check (length(updated_at) = 24) not valid;

-- step: together
alter table comments add column updated_at text collate "C";
alter table comments add constraint comments_updated_at_check check (length(updated_at) = 24) not valid;

-- step: together
-- New kinds of events.
alter table outbox
  drop constraint outbox_kind_check,
  drop constraint outbox_check1,
  add constraint outbox_kind_check check (kind in ('post-added', 'post-updated', 'post-deleted', 'comment-added',
    'comment-updated', 'comment-deleted', 'user-revoked')) not valid,
  add constraint outbox_comment_check check (
    (comment_id is not null) = (kind in ('comment-added', 'comment-updated', 'comment-deleted'))) not valid;

-- step: alone
alter table posts validate constraint posts_updated_at_check;
alter table comments validate constraint comments_updated_at_check;
alter table outbox validate constraint outbox_kind_check;
alter table outbox validate constraint outbox_comment_check;
-- A subscriber that catches up reads the events of its topic alone.
create index concurrently outbox_changed_posts on outbox (kind, position)
  where kind in ('post-updated', 'post-deleted') and comment_id is null;
create index concurrently outbox_of_post_by_kind on outbox (post_id, kind, position) where kind <> 'post-added';
drop index concurrently if exists outbox_of_post;
