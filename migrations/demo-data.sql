-- The demo data, for both engines. $1 is the password hash of those who can log in, $2 begins the token version of each user.
-- A text contains no semicolon, because one ends a statement here.

insert into users (id, name, email, age, role, email_key, name_key, login_key, password_hash, token_mark, created_at) values
  (1, 'Ada Lovelace', 'ada@example.com', 36, 'admin', 'ada@example.com', 'ada lovelace', 'ada@example.com', cast($1 as text), cast($2 as text) || '-0', now_plus(-60 * 86400)),
  (2, 'Grace Hopper', 'grace@example.com', 85, 'member', 'grace@example.com', 'grace hopper', 'grace@example.com', cast($1 as text), cast($2 as text) || '-1', now_plus(-59 * 86400)),
  (3, 'Alan Turing', 'alan@example.com', 41, 'member', 'alan@example.com', 'alan turing', null, null, cast($2 as text) || '-2', now_plus(-58 * 86400)),
  (4, 'Katherine Johnson', 'katherine@example.com', 101, 'member', 'katherine@example.com', 'katherine johnson', null, null, cast($2 as text) || '-3', now_plus(-57 * 86400)),
  (5, 'Edsger Dijkstra', 'edsger@example.com', 72, 'member', 'edsger@example.com', 'edsger dijkstra', null, null, cast($2 as text) || '-4', now_plus(-56 * 86400));

update counters set next = 6 where name = 'users';

insert into posts (author_id, title, content, likes, published_at)
select author, title, content, likes, now_plus(-hours * 3600) from (
  select column1 as hours, column2 as author, column3 as likes, column4 as title, column5 as content from (values
    (478, 1, 31, 'Notes on the analytical engine',
'Mr Babbage''s new engine is not a better calculator. A calculator answers the one question it was built for. This one takes the question on cards, so the same brass can do tomorrow what nobody asked for today.

I have begun to write down how one would tell it what to do. The notes are already longer than the paper they belong to.'),
    (455, 2, 58, 'The first bug, taped into the log book',
'Relay 70, panel F, moth. We found it with tweezers at 15:45 and taped it into the log book, because a report without evidence is only an opinion.

Since then, whenever somebody asks why nothing is finished yet, we say that we are debugging. It has the advantage of being true.'),
    (430, 3, 44, 'Can machines think?',
'I would rather not answer that. "Machine" and "think" mean whatever the person who asks wants them to mean, and a poll would settle nothing.

Let me replace the question by a game with three players and a closed door. It is less grand, but one can actually play it.'),
    (406, 4, 39, 'Checking the trajectory by hand',
'The new computer and I agree to eight significant figures. It took the machine an afternoon and took me a day and a half with a desk calculator.

I am not proud of being slower. I am proud that somebody asked me to check before a man got into the capsule.'),
    (381, 5, 27, 'The goto statement, once more',
'Every jump is a promise that the reader will remember where the program came from. Readers do not. After the third jump I hold a finger on the listing, after the fifth I need a second person.

Give me a loop and a name, and I can explain the program to you on the telephone.'),
    (357, 2, 35, 'A compiler is a patient friend',
'They told me computers could only do arithmetic. So I wrote a program that does arithmetic on programs, and it took two years until anybody dared to try it.

If you have to write the same jump table twice, let the machine write the second one. It does not get bored and it does not transpose digits.'),
    (331, 3, 22, 'A number that no procedure writes down',
'Take all procedures that print digits for ever, one below the other. Change the first digit of the first, the second of the second, and so on. The number in the diagonal is perfectly well defined, and no procedure in the list prints it.

The interesting part is not the number. It is the step at which you believed you could make the list.'),
    (308, 5, 18, 'What a loop invariant tells you',
'Do not ask what the loop does. Ask what it leaves alone. If that sentence is true before the first turn and each turn keeps it, it is true at the end, however many turns there were.

Write the sentence first. Half of the loops that I planned to write disappeared when I tried.'),
    (283, 2, 63, 'Why every nanosecond is thirty centimetres',
'I hand out pieces of wire, each 29.98 cm long. That is how far light gets in a nanosecond. When an admiral asks why a message to a satellite takes so long, I give him a bag of them.

A microsecond is a coil of almost 300 metres. I bring one to lectures and ask who would like to waste it.'),
    (260, 4, 41, 'Landing where you meant to',
'Everybody asks how to get up. I start at the place where the ship should be waiting and work backwards: where it comes down, the angle before that, the moment the engine stops, and at the very end the minute of the launch.

The answer is the same from both sides. From that side, you cannot forget what it is for.'),
    (236, 1, 26, 'Weaving algebraic patterns',
'At the silk mill I watched a loom read its cards. The weaver does not decide each thread, the card does, and the same thread is in a rose at noon and a leaf by three.

The engine weaves algebra in just that way. What the threads are, it does not need to know. They might be notes of music.'),
    (212, 5, 37, 'Shortest paths in a café',
'We were tired from shopping and sat down for coffee. Twenty minutes later I had the shortest way from Rotterdam to Groningen, without paper. Without paper you avoid everything that can be avoided.

I still think that its simplicity comes from the missing pencil.'),
    (187, 3, 16, 'Programs that write programs',
'It is tedious to give the machine each order by hand, and there is no reason why it should not make its own. We need only tell it, once, how an order looks.

I expect a good deal of argument about whose work the result is. The machine will take no part in it.'),
    (163, 3, 29, 'Weather reports before breakfast',
'A cipher of enormous strength is no use if every message at six in the morning begins with the word for weather.

People are the part of the system that repeats itself. It is not a reproach. It is where I start.'),
    (140, 4, 33, 'Trust the numbers, then check them',
'A number from the tracking station is what the radar saw, plus what the wind did, plus somebody who typed it in. I like numbers very much, and I ask each of them where it has been.

Two people, two methods, one result: then I sign.'),
    (116, 5, 52, 'Simplicity is harder than it looks',
'It needs hard work to reach it and some education to appreciate it. Worse, complexity sells better.

Today I took away forty lines and nobody noticed. It was my best day this month.'),
    (92, 1, 20, 'A table for Bernoulli numbers',
'I wanted an example that no person would care to work out twice, so I chose the numbers of Bernoulli. The table has 25 operations, and it goes back to the thirteenth again and again with other values.

In the printed version one of the fractions is upside down. Whoever finds it may have the bottle of ink on my desk.'),
    (67, 2, 71, 'It is easier to ask for forgiveness',
'The phrase I dislike most is "we have always done it this way". I keep a clock in the office that runs backwards. It shows the right time to everybody who is willing to look twice.

If it is a good idea, do it. You can apologise afterwards, and usually nobody asks.'),
    (41, 4, 24, 'Questions one may ask',
'They said that women did not go to the briefings. I asked whether there was a law against it. There was not, so I went.

Since then I ask that about most things. The list of laws is much shorter than the list of habits.'),
    (18, 5, 46, 'Testing shows the presence of bugs',
'It never shows their absence. A test is a question you thought of, and the bug lives in the one that you did not.

So test, by all means. But keep the program so small that you can also argue.')
  ) as listed
) as demo order by hours desc;

insert into comments (post_id, author_id, text, created_at)
select column1, column2, column4, now_plus(-column3 * 3600) from (values
  (1, 5, 470, 'Which order of operations would you write down first? I would begin with what must be true at the end.'),
  (1, 1, 469, 'With the variables, and which card changes which. The end then follows by itself.'),
  (1, 3, 466, 'May I disagree with one sentence in your last note? I think it can originate something.'),
  (2, 4, 452, 'Did you check whether the moth was the cause, or only in the room?'),
  (2, 2, 451, 'The relay worked without it. I call that a cause.'),
  (2, 5, 449, 'I would prefer to call them errors. Bugs sound as if they came in by themselves.'),
  (3, 1, 428, 'And if it only weaves what we have told it?'),
  (3, 3, 426, 'Then I should like to know how often you surprise yourself.'),
  (4, 2, 405, 'This is why I keep the log books. Eight figures, and somebody will ask about the ninth.'),
  (5, 3, 380, 'I have a machine here with nothing but jumps.'),
  (5, 5, 379, 'I know. I have seen the listing.'),
  (6, 1, 356, 'So the engine can be given the work of preparing its own cards. Wonderful.'),
  (6, 4, 350, 'I was replaced by one of those, and then asked to check it.'),
  (8, 2, 306, 'My crew will not write the sentence first. Do you have a shorter one?'),
  (8, 5, 305, 'That is the exercise.'),
  (9, 4, 282, 'I carried mine home and measured the kitchen: twenty nanoseconds.'),
  (9, 1, 279, 'May I have a coil? I know someone who wastes them.'),
  (10, 3, 258, 'Working backwards is also how one reads other people''s letters.'),
  (11, 2, 235, 'Notes of music, in 1843. I ordered the cards at once.'),
  (12, 4, 210, 'Does it still hold if one of the roads is worth less than nothing?'),
  (12, 5, 209, 'No. Then drink something stronger than coffee.'),
  (14, 2, 160, 'Ours ends every message with the same salute. Do not tell anybody.'),
  (15, 5, 138, 'Two methods, or the same method twice? Most people do the second.'),
  (15, 4, 137, 'Two. The second one with the window open.'),
  (16, 2, 114, 'Which forty?'),
  (16, 5, 113, 'Precisely.'),
  (16, 1, 110, 'I shall look at my table again.'),
  (17, 4, 90, 'Found it. The eighth line. I take the ink black, please.'),
  (18, 3, 66, 'My clock runs forwards, but I do not look at it either.'),
  (19, 2, 40, 'The list of habits once had me down as retired. Twice.'),
  (20, 2, 17, 'Then how do you know when to stop?'),
  (20, 5, 16, 'When there is nothing left that I could take away.'),
  (20, 4, 14, 'I would still like somebody to check it by hand.')
) as said order by column3 desc;

insert into orders (user_id, amount_cents, created_at) values
  (1, 20000, now_plus(-722 * 3600)),
  (1, 4600, now_plus(-700 * 3600)),
  (2, 10000, now_plus(-655 * 3600)),
  (2, 2500, now_plus(-610 * 3600)),
  (3, 4500, now_plus(-540 * 3600)),
  (4, 6800, now_plus(-480 * 3600)),
  (5, 11300, now_plus(-420 * 3600)),
  (2, 3600, now_plus(-350 * 3600)),
  (4, 3500, now_plus(-300 * 3600)),
  (3, 7000, now_plus(-251 * 3600)),
  (1, 5400, now_plus(-148 * 3600)),
  (5, 4600, now_plus(-99 * 3600)),
  (2, 6400, now_plus(-52 * 3600)),
  (4, 5100, now_plus(-6 * 3600));

insert into order_items (order_id, name, quantity, price) values
  (1, 'Punched cards, box of 500', 2, 40),
  (1, 'Brass gear, 40 teeth', 1, 120),
  (2, 'Drawing paper', 10, 3),
  (2, 'India ink', 2, 8),
  (3, 'Length of wire, 30 cm', 100, 1),
  (4, 'Log book', 1, 25),
  (5, 'Paper tape, endless', 3, 15),
  (6, 'Slide rule', 1, 60),
  (6, 'Pencils, dozen', 2, 4),
  (7, 'Fountain pen', 1, 95),
  (7, 'Ink, black', 3, 6),
  (8, 'Tweezers, fine', 2, 12),
  (8, 'Adhesive tape', 4, 3),
  (9, 'Graph paper, 100 sheets', 5, 7),
  (10, 'Bicycle chain', 1, 22),
  (10, 'Chess set', 1, 48),
  (11, 'Silk, blue, a metre', 6, 9),
  (12, 'Coffee, a pound', 2, 14),
  (12, 'Map of the Netherlands', 1, 18),
  (13, 'Wall clock, runs backwards', 1, 64),
  (14, 'Desk lamp', 1, 39),
  (14, 'Pencils, dozen', 3, 4);

insert into payments (amount_cents, payer_id, created_at) values
  (4600, 1, now_plus(-690 * 3600)),
  (10000, 2, now_plus(-655 * 3600)),
  (2500, 2, now_plus(-602 * 3600)),
  (4500, 3, now_plus(-538 * 3600)),
  (6800, 4, now_plus(-455 * 3600)),
  (11300, 5, now_plus(-419 * 3600)),
  (3600, 2, now_plus(-349 * 3600)),
  (1999, 2, now_plus(-320 * 3600)),
  (3500, 4, now_plus(-276 * 3600)),
  (7000, 3, now_plus(-250 * 3600)),
  (5400, 1, now_plus(-146 * 3600)),
  (50000, 1, now_plus(-33 * 3600)),
  (725, null, now_plus(-9 * 3600));

update orders set status = 'shipped', payment_id = paid.payment, tracking_carrier = 'Difference Express',
  tracking_number = 'DX' || substr(cast(100000000 + id as text), 2), shipped_at = now_plus(-paid.hours * 3600)
from (select column1 as order_id, column2 as payment, column3 as hours from (values
  (2, 1, 670),
  (3, 2, 635),
  (4, 3, 582),
  (5, 4, 518),
  (6, 5, 435),
  (7, 6, 399),
  (8, 7, 329),
  (9, 9, 256),
  (10, 10, 230),
  (11, 11, 126)
) as listed) as paid where orders.id = paid.order_id;
