-- Beside it: 0.1.0. It reads events by `transaction_id`, which stays for it with its index.
-- The sequencer gives positions to events after their commit (src/storage/entities/outbox.ts). It locks the row of
-- `event_head`, which has the last position given. So positions become visible in their order and without gaps.
alter table outbox add column position bigint;
create table event_head (id integer primary key check (id = 1), position bigint not null);
insert into event_head (id, position) values (1, 0);

-- step: alone
create unique index concurrently outbox_by_position on outbox (position) where position is not null;
create index concurrently outbox_without_position on outbox (id) where position is null;
create index concurrently outbox_new_posts on outbox (position) where kind = 'post-added';
create index concurrently outbox_of_post on outbox (post_id, position) where kind <> 'post-added';
drop index concurrently if exists outbox_by_age;

-- step: run givePositions
-- Subscribers of this version must not get the events of the last hour as new ones.
