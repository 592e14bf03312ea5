// Package search finds the tools for a question among thousands.
//
// An [Index] is an in-memory inverted index over tool names, servers and their instructions, descriptions and
// parameters. It ranks by BM25F with stemming and a small thesaurus, for the whole question and
// for each clause, so that a question with several topics finds a tool for each. A [Finder] combines this order with
// that of embeddings.
//
// An Index is safe for concurrent use. It analyses new tools outside its lock, so a search waits only while the words
// of one server's new tools are inserted. Results depend only on the indexed tools and the question; ties are broken
// by tool id. The work of a search is bounded.
package search

import "encoding/json"

// Tool holds the indexed parts of a tool.
type Tool struct {
	ID           string // unique; Hit.ID
	Server       string
	Instructions string // the server's instructions; only the first 500 bytes are indexed
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
}
