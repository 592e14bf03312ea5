package demo

import (
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

type hrArgs struct {
	Query      string `json:"query"`
	Name       string `json:"name"`
	Department string `json:"department"`
	Location   string `json:"location"`
	Title      string `json:"title"`
}

type hrResult struct {
	Count     int        `json:"count"`
	Employees []employee `json:"employees"`
}

func directoryServer() *server.MCPServer {
	s := newMCPServer("hr", "Demo directory", "An invented company's employees.")
	text := func(name, description string) mcp.ToolOption {
		return mcp.WithString(name, mcp.MaxLength(maxQuery), mcp.Description(description))
	}
	s.AddTool(mcp.NewTool("query_hr",
		mcp.WithDescription("Query the HR employee directory: find people and staff by name, department, "+
			"location or job title, with e-mail address and manager. "+
			"All arguments given must match; without any, everybody is listed."),
		text("query", "Free question or keywords, such as engineers in Berlin"),
		text("name", "Part of the employee's name"),
		text("department", "Department: Management, Engineering, Product, Sales, Marketing, Finance, People or Support"),
		text("location", "City: Berlin, Lisbon or Toronto"),
		text("title", "Part of the job title"),
		mcp.WithRawOutputSchema(json.RawMessage(`{
			"type": "object",
			"properties": {
				"count": {"type": "integer", "description": "Number of employees found"},
				"employees": {
					"type": "array",
					"items": {
						"type": "object",
						"properties": {
							"id": {"type": "string"},
							"name": {"type": "string"},
							"title": {"type": "string"},
							"department": {"type": "string"},
							"location": {"type": "string"},
							"email": {"type": "string", "format": "email"},
							"manager": {"type": "string", "description": "Name of the manager; empty for the head of the company"},
							"since": {"type": "string", "format": "date", "description": "First day at work"}
						},
						"required": ["id", "name", "title", "department", "location", "email", "manager", "since"],
						"additionalProperties": false
					}
				}
			},
			"required": ["count", "employees"],
			"additionalProperties": false
		}`)),
		readOnly("Query HR"),
	), handler(queryHR))
	return s
}

func queryHR(_ context.Context, args hrArgs) (*mcp.CallToolResult, error) {
	for name, value := range map[string]string{
		"query": args.Query, "name": args.Name, "department": args.Department, "location": args.Location, "title": args.Title,
	} {
		if err := bound(name, value, maxQuery); err != nil {
			return nil, err
		}
	}
	found := []employee{}
	for _, e := range employees() {
		if holds(e.Name, args.Name) && holds(e.Department, args.Department) &&
			holds(e.Location, args.Location) && holds(e.Title, args.Title) {
			found = append(found, e)
		}
	}
	found = bestMatches(found, args.Query)

	var text strings.Builder
	switch len(found) {
	case 0:
		text.WriteString("No employee found")
	case 1:
		text.WriteString("1 employee found")
	default:
		fmt.Fprintf(&text, "%d employees found", len(found))
	}
	for _, e := range found {
		fmt.Fprintf(&text, "\n%s, %s (%s, %s), %s", e.Name, e.Title, e.Department, e.Location, e.Email)
	}
	return mcp.NewToolResultStructured(hrResult{Count: len(found), Employees: found}, text.String()), nil
}

// holds reports whether value contains part, without regard to case and outer spaces.
func holds(value, part string) bool {
	return strings.Contains(strings.ToLower(value), strings.ToLower(strings.TrimSpace(part)))
}

// bestMatches keeps the employees that match the most words of the query. A query without words that describe people
// matches everybody if it asks for employees in general, and otherwise nobody.
func bestMatches(all []employee, query string) []employee {
	terms := slices.DeleteFunc(stems(query), func(stem string) bool {
		return slices.Contains([]string{"employe", "person", "staff", "everybodi", "list", "find", "search"}, stem)
	})
	if len(terms) == 0 {
		return all
	}
	best, most := []employee{}, 1
	for _, e := range all {
		own := stems(strings.Join([]string{e.ID, e.Name, e.Title, e.Department, e.Location}, " "))
		count := 0
		for _, term := range terms {
			if slices.Contains(own, term) {
				count++
			}
		}
		if count > most {
			best, most = best[:0], count
		}
		if count == most {
			best = append(best, e)
		}
	}
	return best
}

// stems returns the stems of the words of a text, without stop words.
func stems(text string) (stems []string) {
	for _, word := range texts.Words(text) {
		if !search.IsStopWord(word) {
			stems = append(stems, search.Stem(word))
		}
	}
	return stems
}
