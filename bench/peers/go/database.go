package main

import (
	"database/sql"
	"encoding/json"

	_ "github.com/mattn/go-sqlite3"
)

const postColumns = "id, author_id, title, content, likes, published_at"

// Statements are prepared once. Reads use a pool of connections, writes one connection, as go-sqlite3's FAQ advises.
type database struct {
	reads, writes                                            *sql.DB
	user, users, post, newest, older, usersByIds, commentsOf *sql.Stmt
	addUser, like, findKey, addPayment, addKey               *sql.Stmt
}

func open(path string) *database {
	const settings = "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=5000&_txlock=immediate&_cache_size=-65536"
	reads, err := sql.Open("sqlite3", "file:"+path+settings)
	check(err)
	writes, err := sql.Open("sqlite3", "file:"+path+settings)
	check(err)
	reads.SetMaxIdleConns(8)
	reads.SetMaxOpenConns(8)
	writes.SetMaxOpenConns(1)
	prepare := func(db *sql.DB, text string) *sql.Stmt {
		statement, err := db.Prepare(text)
		check(err)
		return statement
	}
	return &database{
		reads: reads, writes: writes,
		user:   prepare(reads, "select id, name, email, age, avatar from users where id = ?"),
		users:  prepare(reads, "select id, name, email, age, avatar from users where id > ? order by id limit +?"),
		post:   prepare(reads, "select "+postColumns+" from posts where id = ?"),
		newest: prepare(reads, "select "+postColumns+" from posts order by id desc limit +? offset +?"),
		older:  prepare(reads, "select "+postColumns+" from posts where id < ? order by id desc limit +?"),
		usersByIds: prepare(reads,
			"select id, name, email, avatar from users where id in (select value from json_each(?))"),
		commentsOf: prepare(reads,
			`select c.id, c.text, c.author_id, c.post_id from json_each(?) p join comments c on c.id in
			   (select id from comments where post_id = p.value order by id limit +?) order by p.key, c.id`),
		addUser: prepare(writes,
			`insert into users (name, email, email_key, token_mark, created_at) values (?, ?, lower(?), 'mark', ?)
			 returning id`),
		like: prepare(writes, "update posts set likes = likes + 1 where id = ? returning "+postColumns),
		findKey: prepare(writes,
			`select p.id, p.amount_cents, o.id, p.created_at from idempotency_keys k
			 join payments p on p.id = k.payment_id left join orders o on o.payment_id = p.id
			 where coalesce(k.caller_id, 0) = 0 and k.scope = '/payments' and k.key = ?`),
		addPayment: prepare(writes, "insert into payments (amount_cents, created_at) values (?, ?) returning id"),
		addKey: prepare(writes,
			"insert into idempotency_keys (scope, key, payment_id, expires_at) values ('/payments', ?, ?, ?)"),
	}
}

func (d *database) readPosts(rows *sql.Rows, err error) []*post {
	check(err)
	defer rows.Close()
	group := &posts{database: d}
	for rows.Next() {
		each := &post{group: group}
		check(rows.Scan(&each.id, &each.authorID, &each.title, &each.content, &each.likes, &each.publishedAt))
		group.list = append(group.list, each)
	}
	check(rows.Err())
	return group.list
}

// The users with these ids, by id.
func (d *database) readUsers(ids []int64) map[int64]*user {
	list, err := json.Marshal(ids)
	check(err)
	rows, err := d.usersByIds.Query(string(list))
	check(err)
	defer rows.Close()
	found := make(map[int64]*user, len(ids))
	for rows.Next() {
		each := &user{}
		check(rows.Scan(&each.id, &each.name, &each.email, &each.avatar))
		found[each.id] = each
	}
	check(rows.Err())
	return found
}
