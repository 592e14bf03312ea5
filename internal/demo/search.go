package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
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
		r := searchResult{Title: h.page.Title, URL: h.page.URL, Date: h.page.Date, Snippet: h.page.Text}
		found.Results = append(found.Results, r)
		fmt.Fprintf(&text, "%d. %s (%s)\n%s\n%s\n", i+1, r.Title, r.Date, r.Snippet, r.URL)
	}
	if len(hits) == 0 {
		text.WriteString("No page matches the query.")
	}
	return mcp.NewToolResultStructured(found, strings.TrimSuffix(text.String(), "\n")), nil
}
