// Package search finds the tools that fit a question among thousands.
//
// An [Index] is an inverted index in memory over the words of tool names, servers and their instructions, descriptions and
// parameters. It
// ranks by BM25F with stemming, a small thesaurus and the words that WordNet relates, for the whole question and for
// each clause, so that a question for several things finds a tool for each. A [Finder] combines this order with that of
// embeddings.
//
// An Index is safe for concurrent use. It analyses new tools outside of its lock, so a search waits only while the
// words of one server's new tools are inserted. Results depend only on the indexed tools and the question; the tool
// id breaks ties. The work of a search is bounded.
package search

import "encoding/json"

// Tool has the indexed parts of a tool.
type Tool struct {
	ID           string // unique; Hit.ID
	Server       string
	Instructions string // what the server says about its use; the first 500 bytes count
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
}
