// The same interface in Go: net/http, graph-gophers/graphql-go and mattn/go-sqlite3, all from Debian's packages.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	graphql "github.com/graph-gophers/graphql-go"
	"github.com/graph-gophers/graphql-go/relay"
)

const schemaText = `
	schema { query: Query mutation: Mutation }
	type User { id: ID! name: String! email: String! avatar: String }
	type Post {
		id: ID! title: String! content: String! likes: Int! publishedAt: String
		author: User! comments(limit: Int = 10): [Comment!]!
	}
	type Comment { id: ID! text: String! author: User! }
	type Query { post(id: ID!): Post posts(limit: Int = 10, offset: Int = 0, after: ID): [Post!]! }
	type Mutation { likePost(id: ID!): Post! }
`

func main() {
	database := open(os.Args[1])
	schema := graphql.MustParseSchema(schemaText, &root{database}, graphql.MaxDepth(6), graphql.UseStringDescriptions())
	mux := http.NewServeMux()
	mux.Handle("/graphql", &relay.Handler{Schema: schema})
	mux.HandleFunc("/users", database.serveUsers)
	mux.HandleFunc("/users/", database.serveUser)
	mux.HandleFunc("/api/users/", database.serveUser)
	mux.HandleFunc("/payments", database.servePayments)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("http://%s/health\n", listener.Addr())
	check(http.Serve(listener, mux))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
