// Package search finds the tools that fit a question among thousands.
//
// An [Index] is an inverted index in memory over the words of tool names, servers, descriptions and
// parameters, ranked by BM25F with stemming and a small thesaurus. A question that asks for several
// things is searched clause by clause as well, so that each thing finds its tool.
//
// An Index is safe for concurrent use. Analysis of new tools happens outside of its lock, so that a
// search waits for an update no longer than inserting the words of one server's new tools takes. Results
// are a deterministic function of the indexed tools and the question; ties are broken by tool id.
// Work per search is bounded whatever the question.
package search

import "encoding/json"

// Tool is what is indexed of a tool.
type Tool struct {
	ID          string // unique; what hits name
	Server      string
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage
}
