-- The demo data, for both engines. $1 is the password hash of those who can log in, $2 begins the token version of each user.

insert into users (id, name, email, age, role, email_key, login_key, password_hash, token_mark, created_at) values
  (1, 'Ada Lovelace', 'ada@example.com', 36, 'admin', 'ada@example.com', 'ada@example.com', cast($1 as text), cast($2 as text) || '-0', now_plus(-60 * 86400)),
  (2, 'Grace Hopper', 'grace@example.com', 85, 'member', 'grace@example.com', 'grace@example.com', cast($1 as text), cast($2 as text) || '-1', now_plus(-59 * 86400)),
  (3, 'Alan Turing', 'alan@example.com', 41, 'member', 'alan@example.com', null, null, cast($2 as text) || '-2', now_plus(-58 * 86400)),
  (4, 'Katherine Johnson', 'katherine@example.com', 101, 'member', 'katherine@example.com', null, null, cast($2 as text) || '-3', now_plus(-57 * 86400)),
  (5, 'Edsger Dijkstra', 'edsger@example.com', 72, 'member', 'edsger@example.com', null, null, cast($2 as text) || '-4', now_plus(-56 * 86400));

update counters set next = 6 where name = 'users';

insert into posts (author_id, title, content, likes, published_at)
select author, title, title || '. A few thoughts, written down before they fade.', likes, now_plus(-days * 86400)
from (
  select column1 as days, column2 as author, column3 as likes, column4 as title from (values
    (20, 1, 0, 'Notes on the analytical engine'),
    (19, 2, 7, 'The first bug, taped into the log book'),
    (18, 3, 14, 'Can machines think?'),
    (17, 4, 21, 'Checking the trajectory by hand'),
    (16, 5, 5, 'Go to statement considered harmful'),
    (15, 1, 12, 'A compiler is a patient friend'),
    (14, 2, 19, 'On computable numbers'),
    (13, 3, 3, 'What a loop invariant tells you'),
    (12, 4, 10, 'Why every nanosecond is thirty centimetres'),
    (11, 5, 17, 'Landing where you meant to'),
    (10, 1, 1, 'Weaving algebraic patterns'),
    (9, 2, 8, 'Shortest paths in a café'),
    (8, 3, 15, 'Programs that write programs'),
    (7, 4, 22, 'Breaking ciphers before breakfast'),
    (6, 5, 6, 'Trust the numbers, then verify them'),
    (5, 1, 13, 'Simplicity is prerequisite for reliability'),
    (4, 2, 20, 'A diagram for Bernoulli numbers'),
    (3, 3, 4, 'It is easier to ask forgiveness'),
    (2, 4, 11, 'The imitation game'),
    (1, 5, 18, 'Testing shows the presence of bugs')
  ) as listed
) as demo order by days desc;

insert into comments (post_id, author_id, text, created_at)
select posts.id, (posts.id + column1) % 5 + 1, column2, published_at
from posts join (values
  (0, 'I read this twice.'),
  (1, 'Would it work backwards, too?'),
  (2, 'This belongs on the wall.')
) as remarks on column1 < (posts.id - 1) % 4 order by posts.id, column1;

insert into orders (user_id, amount_cents, created_at) values
  (1, 20000, now_plus(-9 * 86400)),
  (1, 4600, now_plus(-9 * 86400)),
  (2, 10000, now_plus(-9 * 86400)),
  (2, 2500, now_plus(-9 * 86400)),
  (3, 4500, now_plus(-9 * 86400)),
  (4, 6800, now_plus(-9 * 86400));

insert into order_items (order_id, name, quantity, price) values
  (1, 'Punched cards, box of 500', 2, 40),
  (1, 'Brass gear, 40 teeth', 1, 120),
  (2, 'Drawing paper', 10, 3),
  (2, 'India ink', 2, 8),
  (3, 'Length of wire, 30 cm', 100, 1),
  (4, 'Log book', 1, 25),
  (5, 'Paper tape, endless', 3, 15),
  (6, 'Slide rule', 1, 60),
  (6, 'Pencils, dozen', 2, 4);

insert into payments (amount_cents, payer_id, created_at) values
  (4600, 1, now_plus(-8 * 86400)),
  (2500, 2, now_plus(-8 * 86400)),
  (6800, 4, now_plus(-8 * 86400));

update orders set status = 'shipped', payment_id = id / 2, tracking_carrier = 'Difference Express',
  tracking_number = 'DX0000000' || id, shipped_at = now_plus(-7 * 86400) where id in (2, 4, 6);
