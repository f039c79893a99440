-- The id of an event is its position. A subscriber that catches up reads the events of its topic alone.
create index outbox_new_posts on outbox (id) where kind = 'post-added';
create index outbox_of_post on outbox (post_id, id) where kind <> 'post-added';
drop index outbox_by_age;
