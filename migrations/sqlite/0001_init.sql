-- Instants are 24 characters of canonical text (2026-01-31T12:00:00.000Z), which sort as they happened.
-- Amounts of money are whole hundredths. Ids stay below 2^53, so that every JSON reader keeps them exact.

-- Ids the service assigns to users. Clients choose ids too (PUT), so the counter skips what is taken.
create table counters (
  name text primary key,
  next integer not null check (next between 1 and 9007199254740991)
) strict, without rowid;
insert into counters (name, next) values ('users', 1);

create table users (
  id integer primary key check (id between 1 and 9007199254740991),
  name text not null check (length(name) between 1 and 320),
  email text not null check (length(email) between 1 and 320),
  age integer check (age between 0 and 150),
  avatar text check (length(avatar) between 1 and 2048),
  role text not null default 'member' check (role in ('member', 'admin')),
  -- The lower-cased e-mail of a user who can log in; only among those is it unique.
  login_key text unique,
  password_hash text,
  -- A random mark carried by the user's tokens: renewed, older tokens die.
  token_mark text not null,
  created_at text not null check (length(created_at) = 24),
  check ((login_key is null) = (password_hash is null))
) strict;

create table posts (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  author_id integer not null references users (id) on delete cascade,
  title text not null check (length(title) between 1 and 300),
  content text not null check (length(content) between 1 and 65536),
  likes integer not null default 0 check (likes between 0 and 2147483647),
  published_at text check (length(published_at) = 24)
) strict;
create index posts_by_author on posts (author_id, id);
create index posts_by_publication on posts (published_at, id);

create table comments (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  post_id integer not null references posts (id) on delete cascade,
  author_id integer not null references users (id) on delete cascade,
  text text not null check (length(text) between 1 and 65536),
  created_at text not null check (length(created_at) = 24)
) strict;
create index comments_by_post on comments (post_id, id);
create index comments_by_author on comments (author_id);

-- Payments are never deleted, so no id can come twice.
create table payments (
  id integer primary key check (id between 1 and 9007199254740991),
  amount_cents integer not null check (amount_cents between 1 and 100000000000000),
  payer_id integer references users (id) on delete set null,
  created_at text not null check (length(created_at) = 24),
  unique (id, amount_cents)
) strict;
create index payments_by_payer on payments (payer_id) where payer_id is not null;

-- An order is shipped exactly when it has its one payment, of exactly its amount, and its tracking record.
create table orders (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  user_id integer references users (id) on delete set null,
  status text not null default 'pending_payment' check (status in ('pending_payment', 'shipped')),
  amount_cents integer not null check (amount_cents between 100 and 100000000000000 and amount_cents % 100 = 0),
  payment_id integer unique,
  tracking_carrier text,
  tracking_number text unique,
  shipped_at text check (length(shipped_at) = 24),
  created_at text not null check (length(created_at) = 24),
  foreign key (payment_id, amount_cents) references payments (id, amount_cents),
  check ((status = 'shipped') = (payment_id is not null)),
  check ((status = 'shipped') = (tracking_carrier is not null)),
  check ((status = 'shipped') = (tracking_number is not null)),
  check ((status = 'shipped') = (shipped_at is not null))
) strict;
create index orders_by_user on orders (user_id, id);

create table order_items (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  order_id integer not null references orders (id) on delete cascade,
  name text not null check (length(name) between 1 and 320),
  quantity integer not null check (quantity between 1 and 10000),
  price integer not null check (price between 0 and 1000000000)
) strict;
create index order_items_by_order on order_items (order_id, id);

-- A key is claimed by inserting it together with its payment. Keys belong to their caller (none: all anonymous callers
-- together) and to a scope, the path they were sent to.
create table idempotency_keys (
  id integer primary key,
  caller_id integer references users (id) on delete cascade,
  scope text not null,
  key text not null check (length(key) between 1 and 255),
  payment_id integer not null references payments (id),
  expires_at text not null check (length(expires_at) = 24)
) strict;
create unique index idempotency_keys_by_key on idempotency_keys (coalesce(caller_id, 0), scope, key);
create index idempotency_keys_by_caller on idempotency_keys (caller_id) where caller_id is not null;
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- What happened, written with the change itself. Rows name what they are about without referring to it, since it may be
-- gone by the time they are read.
create table outbox (
  id integer primary key autoincrement,
  kind text not null check (kind in ('post-added', 'post-deleted', 'comment-added', 'user-revoked')),
  post_id integer,
  comment_id integer,
  user_id integer,
  created_at text not null check (length(created_at) = 24),
  check ((post_id is not null) = (kind <> 'user-revoked')),
  check ((comment_id is not null) = (kind = 'comment-added')),
  check ((user_id is not null) = (kind = 'user-revoked'))
) strict;
create index outbox_by_age on outbox (created_at);
