// Package search finds the tools for a question among thousands.
//
// An [Index] is an in-memory inverted index over tool names, servers and their instructions, descriptions and
// parameters. It ranks by BM25F with stemming, a small thesaurus, the words of the best tools and the share of a tool's
// words that the question has, for the whole question and for each clause, so that a question with several topics finds
// a tool for each. A [Finder] combines this order with that of embeddings.
//
// An Index is safe for concurrent use. It analyses new tools outside its lock; the first search after an update builds
// the inverted index. Results depend only on the indexed tools and the question; ties are broken by tool id. The work
// of a search is bounded.
package search

import (
	"cmp"
	"encoding/json"
)

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

// SearchOptions narrow a search.
type SearchOptions struct {
	Limit int                            // maximum number of hits, at most 200; 0 means 10
	Allow func(server, name string) bool // which tools may be found; nil means all

	// Literal finds tools only by words of the question and their synonyms. It is for callers that use hits without a
	// further check.
	Literal bool
}

func (o SearchOptions) limit() int { return min(cmp.Or(max(o.Limit, 0), defaultLimit), maxLimit) }

// Hit is one found tool.
type Hit struct {
	ID    string
	Score float64  // comparable within one search only
	Terms []string // matching words of the question, in order

	doc *document
}
