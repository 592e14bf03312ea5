package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	defaultResults = 5
	maxResults     = 20
	maxQuery       = 10_000 // characters
)

type searchArgs struct {
	Query      string `json:"query"`
	MaxResults *int   `json:"max_results"`
}

type searchResults struct {
	Results []searchResult `json:"results"`
}

type searchResult struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Date    string `json:"date"`
	Snippet string `json:"snippet"`
}

func searchServer() *server.MCPServer {
	ix := newIndex(corpus())
	s := newMCPServer("search", "Demo search", "Searches a small invented collection of news and reference pages.")
	s.AddTool(mcp.NewTool("web_search",
		mcp.WithDescription("Search the web for the latest news, facts and reference articles on any topic. "+
			"Returns titles, links, dates and snippets."),
		mcp.WithString("query", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(maxQuery),
			mcp.Description("What to search for: a question or keywords")),
		mcp.WithInteger("max_results", mcp.DefaultNumber(defaultResults), mcp.Min(1), mcp.Max(maxResults),
			mcp.Description("How many results to return")),
		mcp.WithRawOutputSchema(json.RawMessage(`{
			"type": "object",
			"properties": {
				"results": {
					"type": "array",
					"description": "Pages that match, best first",
					"items": {
						"type": "object",
						"properties": {
							"title": {"type": "string"},
							"url": {"type": "string", "format": "uri"},
							"date": {"type": "string", "format": "date", "description": "Day of publication"},
							"snippet": {"type": "string"}
						},
						"required": ["title", "url", "date", "snippet"],
						"additionalProperties": false
					}
				}
			},
			"required": ["results"],
			"additionalProperties": false
		}`)),
		readOnly("Web search"),
	), handler(ix.webSearch))
	return s
}

func (ix *index) webSearch(ctx context.Context, args searchArgs) (*mcp.CallToolResult, error) {
	if err := required("query", args.Query, maxQuery); err != nil {
		return nil, err
	}
	limit := defaultResults
	if args.MaxResults != nil {
		limit = *args.MaxResults
	}
	if limit < 1 || limit > maxResults {
		return nil, fmt.Errorf("the argument max_results is %d, want 1 to %d", limit, maxResults)
	}
	report(ctx, 1, 4, fmt.Sprintf("Searching %d pages...", len(ix.pages)))
	hits := ix.search(args.Query)
	report(ctx, 2, 4, fmt.Sprintf("Ranking %d matches...", len(hits)))
	hits = hits[:min(limit, len(hits))]
	report(ctx, 3, 4, "Preparing results...")

	found := searchResults{Results: []searchResult{}}
	var text strings.Builder
	for i, h := range hits {
		r := searchResult{Title: h.Title, URL: h.URL, Date: h.Date, Snippet: h.Text}
		found.Results = append(found.Results, r)
		fmt.Fprintf(&text, "%d. %s (%s)\n%s\n%s\n", i+1, r.Title, r.Date, r.Snippet, r.URL)
	}
	if len(hits) == 0 {
		text.WriteString("No page matches the query.")
	}
	return mcp.NewToolResultStructured(found, strings.TrimSuffix(text.String(), "\n")), nil
}

// index ranks the corpus. It is immutable once built.
type index struct {
	pages map[string]*document // by URL
	words *search.Index
}

func newIndex(documents []document) *index {
	ix := &index{pages: map[string]*document{}, words: search.New()}
	var all []search.Tool
	for _, d := range documents {
		ix.pages[d.URL] = &d
		all = append(all, search.Tool{ID: d.URL, Name: d.Title, Title: d.Topic, Description: d.Text})
	}
	ix.words.Update("", all)
	return ix
}

// search returns the pages with more than half of the words that the best has, best first. Queries for news find news
// first, the newest at the top; a query with no other words finds all news.
func (ix *index) search(query string) (found []*document) {
	var terms []string
	wantsNews := false
	for _, word := range texts.Words(query) {
		switch {
		case newsWords[word]:
			wantsNews = true
		case !search.IsStopWord(word) && !search.RequestVerb(word):
			terms = append(terms, word)
		}
	}
	hits := ix.words.Search(strings.Join(terms, " "), search.SearchOptions{Limit: len(ix.pages)})
	most := 0
	for _, hit := range hits {
		most = max(most, len(hit.Terms))
	}
	for _, hit := range hits {
		if 2*len(hit.Terms) > most {
			found = append(found, ix.pages[hit.ID])
		}
	}
	if !wantsNews {
		return found
	}
	if len(terms) == 0 {
		for _, d := range ix.pages {
			if d.News {
				found = append(found, d)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *document) int {
		switch {
		case a.News && !b.News:
			return -1
		case b.News && !a.News:
			return 1
		}
		return cmp.Or(strings.Compare(b.Date, a.Date), strings.Compare(a.Title, b.Title))
	})
	return found
}

// newsWords ask for news.
var newsWords = map[string]bool{
	"new": true, "news": true, "latest": true, "recent": true, "recently": true, "current": true, "today": true,
	"headline": true, "headlines": true, "update": true, "updates": true, "week": true, "month": true,
}
