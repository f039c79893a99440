package main

import (
	"encoding/json"
	"strconv"
	"sync"

	graphql "github.com/graph-gophers/graphql-go"
)

type root struct{ database *database }

type user struct {
	id          int64
	name, email string
	avatar      *string
}

type post struct {
	group          *posts
	id, authorID   int64
	title, content string
	likes          int32
	publishedAt    *string
}

type comment struct {
	group        *comments
	id, authorID int64
	postID       int64
	text         string
}

// Posts of one list. The first that is asked for its author or its comments reads those of all, in one statement.
type posts struct {
	database  *database
	list      []*post
	once      sync.Once
	authors   map[int64]*user
	onceLists sync.Once
	comments  map[int64][]*comment
}

// Comments of all posts of one list, likewise.
type comments struct {
	database *database
	list     []*comment
	once     sync.Once
	authors  map[int64]*user
}

func (r *root) Post(args struct{ ID graphql.ID }) *post {
	list := r.database.readPosts(r.database.post.Query(number(args.ID)))
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (r *root) Posts(args struct {
	Limit, Offset int32
	After         *graphql.ID
}) []*post {
	if args.After == nil {
		return r.database.readPosts(r.database.newest.Query(args.Limit, args.Offset))
	}
	return r.database.readPosts(r.database.older.Query(number(*args.After), args.Limit))
}

func (r *root) LikePost(args struct{ ID graphql.ID }) *post {
	return r.database.readPosts(r.database.like.Query(number(args.ID)))[0]
}

func (p *post) ID() graphql.ID       { return text(p.id) }
func (p *post) Title() string        { return p.title }
func (p *post) Content() string      { return p.content }
func (p *post) Likes() int32         { return p.likes }
func (p *post) PublishedAt() *string { return p.publishedAt }

func (p *post) Author() *user {
	p.group.once.Do(func() {
		ids := make([]int64, 0, len(p.group.list))
		for _, each := range p.group.list {
			ids = append(ids, each.authorID)
		}
		p.group.authors = p.group.database.readUsers(ids)
	})
	return p.group.authors[p.authorID]
}

// All posts of a list are asked with the same limit: the field has one argument in the benchmark's operations.
func (p *post) Comments(args struct{ Limit int32 }) []*comment {
	p.group.onceLists.Do(func() {
		ids := make([]int64, 0, len(p.group.list))
		for _, each := range p.group.list {
			ids = append(ids, each.id)
		}
		list, err := json.Marshal(ids)
		check(err)
		rows, err := p.group.database.commentsOf.Query(string(list), args.Limit)
		check(err)
		defer rows.Close()
		group := &comments{database: p.group.database}
		p.group.comments = make(map[int64][]*comment, len(ids))
		for rows.Next() {
			each := &comment{group: group}
			check(rows.Scan(&each.id, &each.text, &each.authorID, &each.postID))
			group.list = append(group.list, each)
			p.group.comments[each.postID] = append(p.group.comments[each.postID], each)
		}
		check(rows.Err())
	})
	return p.group.comments[p.id]
}

func (c *comment) ID() graphql.ID { return text(c.id) }
func (c *comment) Text() string   { return c.text }

func (c *comment) Author() *user {
	c.group.once.Do(func() {
		seen := map[int64]bool{}
		ids := []int64{}
		for _, each := range c.group.list {
			if !seen[each.authorID] {
				seen[each.authorID] = true
				ids = append(ids, each.authorID)
			}
		}
		c.group.authors = c.group.database.readUsers(ids)
	})
	return c.group.authors[c.authorID]
}

func (u *user) ID() graphql.ID  { return text(u.id) }
func (u *user) Name() string    { return u.name }
func (u *user) Email() string   { return u.email }
func (u *user) Avatar() *string { return u.avatar }

func text(id int64) graphql.ID { return graphql.ID(strconv.FormatInt(id, 10)) }

func number(id graphql.ID) int64 {
	parsed, _ := strconv.ParseInt(string(id), 10, 64)
	return parsed
}
