-- How many comments a post has.
alter table posts add column comment_count integer not null default 0 check (comment_count between 0 and 2147483647);
create trigger comments_added after insert on comments begin
  update posts set comment_count = comment_count + 1 where id = new.post_id;
end;
create trigger comments_deleted after delete on comments begin
  update posts set comment_count = max(comment_count - 1, 0) where id = old.post_id;
end;

-- step: run mendCommentCounts
