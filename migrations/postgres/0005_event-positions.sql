-- The sequencer gives positions to events after their commit (src/storage/entities/outbox.ts). It locks the row of
-- `event_head`, which has the last position given. So positions become visible in their order and without gaps.
alter table outbox add column position bigint;
create table event_head (id integer primary key check (id = 1), position bigint not null);

update outbox set position = numbered.position
from (select id, row_number() over (order by transaction_id, id) as position from outbox) as numbered
where numbered.id = outbox.id;
insert into event_head (id, position) select 1, coalesce(max(position), 0) from outbox;

create unique index outbox_by_position on outbox (position) where position is not null;
create index outbox_without_position on outbox (id) where position is null;
create index outbox_new_posts on outbox (position) where kind = 'post-added';
create index outbox_of_post on outbox (post_id, position) where kind <> 'post-added';
drop index outbox_by_age;

-- `transaction_id` and its index stay for instances of the former version that run beside this one: they read by it.
