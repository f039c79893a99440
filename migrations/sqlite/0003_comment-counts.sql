-- How many comments a post has. Every change of its comments keeps it, in the same transaction.
alter table posts add column comment_count integer not null default 0 check (comment_count between 0 and 2147483647);
update posts set comment_count = counted.comments
from (select post_id, count(*) as comments from comments group by post_id) as counted
where counted.post_id = posts.id;
