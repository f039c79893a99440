-- Beside it: 0.1.0
-- How many comments a post has. Triggers keep it, so that it is right also for comments that 0.1.0 writes.
alter table posts add column comment_count integer not null default 0;
alter table posts add constraint posts_comment_count_check check (comment_count >= 0) not valid;

-- step: together
create function count_comments() returns trigger language plpgsql as $$
begin
  -- A deletion of comments that are not counted yet must not fail: the next step counts them.
  update posts set comment_count = greatest(comment_count + changed.comments * tg_argv[0]::integer, 0)
  from (select post_id, count(*) as comments from changed_comments group by post_id) as changed
  where changed.post_id = posts.id;
  return null;
end
$$;
create trigger comments_added after insert on comments
  referencing new table as changed_comments for each statement execute function count_comments('1');
create trigger comments_deleted after delete on comments
  referencing old table as changed_comments for each statement execute function count_comments('-1');

-- step: run mendCommentCounts
-- step: alone
alter table posts validate constraint posts_comment_count_check;
-- The comments of a deleted user are deleted in the order of their ids. SQLite has the id in every index.
create index concurrently comments_of_author on comments (author_id, id);
drop index concurrently if exists comments_by_author;
