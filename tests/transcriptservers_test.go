package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// office is what the servers of the transcripts hold. files and memory have tools and results like server-filesystem and
// server-memory, whose place they take where those are not installed.
type office struct {
	folder string
	writes []string // names of tools

	mu     sync.Mutex
	Graph  graph            `yaml:"graph"`
	Tables map[string][]row `yaml:"tables"`
	Mails  []mail           `yaml:"mails"`
	sent   []mail
}

type row = map[string]any

type graph struct {
	Entities  []entity   `json:"entities" yaml:"entities"`
	Relations []relation `json:"relations" yaml:"relations"`
}

type entity struct {
	Name         string   `json:"name" yaml:"name"`
	EntityType   string   `json:"entityType" yaml:"entityType"`
	Observations []string `json:"observations" yaml:"observations"`
}

type relation struct {
	From         string `json:"from" yaml:"from"`
	To           string `json:"to" yaml:"to"`
	RelationType string `json:"relationType" yaml:"relationType"`
}

type mail struct {
	ID      string `json:"id" yaml:"id"`
	From    string `json:"from,omitempty" yaml:"from"`
	To      string `json:"to,omitempty" yaml:"to"`
	Subject string `json:"subject" yaml:"subject"`
	Date    string `json:"date,omitempty" yaml:"date"`
	Unread  bool   `json:"unread" yaml:"unread"`
	Body    string `json:"body,omitempty" yaml:"body"`
}

// newOffice makes an office with the files and values of a YAML text.
func newOffice(t *testing.T, text []byte) *office {
	o := &office{folder: t.TempDir()}
	var files struct {
		Files map[string]string `yaml:"files"`
	}
	if err := errors.Join(yaml.Unmarshal(text, &files), yaml.Unmarshal(text, o)); err != nil {
		t.Fatal(err)
	}
	for name, content := range files.Files {
		path := filepath.Join(o.folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// servers returns the configuration of the servers. They end with the test.
func (o *office) servers(t *testing.T) string {
	var config strings.Builder
	config.WriteString("mcpServers:\n")
	for name, add := range map[string]func(*mcp.Server){"files": o.addFiles, "memory": o.addMemory, "database": o.addDatabase, "mail": o.addMail} {
		server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
		add(server)
		if os.Getenv("NEXUS_COUNTERPARTS") != "" && (name == "files" || name == "memory") {
			continue
		}
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
		t.Cleanup(web.Close)
		fmt.Fprintf(&config, "  %s: {url: %q}\n", name, web.URL)
	}
	if os.Getenv("NEXUS_COUNTERPARTS") == "" {
		return config.String()
	}
	c, store := others(t), filepath.Join(t.TempDir(), "memory.jsonl")
	var lines bytes.Buffer
	for _, e := range o.Graph.Entities {
		fmt.Fprintf(&lines, "{\"type\":\"entity\",%s\n", encode(t, e)[1:])
	}
	for _, r := range o.Graph.Relations {
		fmt.Fprintf(&lines, "{\"type\":\"relation\",%s\n", encode(t, r)[1:])
	}
	if err := os.WriteFile(store, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&config, "  files: {command: %q, args: [%q, %q]}\n", c.node, c.script("server-filesystem", "dist/index.js"), o.folder)
	fmt.Fprintf(&config, "  memory: {command: %q, args: [%q], env: {MEMORY_FILE_PATH: %q}}\n", c.node, c.script("server-memory", "dist/index.js"), store)
	return config.String()
}

// add adds a tool. Its handler has the office for itself.
func add[In, Out any](o *office, s *mcp.Server, name, description string, hints mcp.ToolAnnotations, handle func(In) (Out, error)) {
	if !hints.ReadOnlyHint {
		o.writes = append(o.writes, name)
	}
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, Annotations: &hints}, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		out, err := handle(in)
		return nil, out, err
	})
}

var (
	no      = false
	reads   = mcp.ToolAnnotations{ReadOnlyHint: true}
	adds    = mcp.ToolAnnotations{DestructiveHint: &no}
	deletes = mcp.ToolAnnotations{}
)

type text struct {
	Content string `json:"content"`
}

type place struct {
	Path string `json:"path"`
}

func (o *office) path(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", errors.New("access denied - path outside allowed directories: " + name)
	}
	return filepath.Join(o.folder, name), nil
}

func (o *office) addFiles(s *mcp.Server) {
	add(o, s, "read_text_file", "Read the complete contents of a file from the file system as text. Only works within allowed directories.", reads, func(in place) (text, error) {
		path, err := o.path(in.Path)
		if err != nil {
			return text{}, err
		}
		raw, err := os.ReadFile(path)
		return text{string(raw)}, err
	})
	add(o, s, "list_directory", "Get a detailed listing of all files and directories in a specified path. Results clearly distinguish between files and directories with [FILE] and [DIR] prefixes. Only works within allowed directories.", reads, func(in place) (text, error) {
		path, err := o.path(in.Path)
		if err != nil {
			return text{}, err
		}
		entries, err := os.ReadDir(path)
		var lines []string
		for _, e := range entries {
			kind := "[FILE] "
			if e.IsDir() {
				kind = "[DIR] "
			}
			lines = append(lines, kind+e.Name())
		}
		return text{strings.Join(lines, "\n")}, err
	})
	type file struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	add(o, s, "write_file", "Create a new file or completely overwrite an existing file with new content. Only works within allowed directories.", deletes, func(in file) (text, error) {
		path, err := o.path(in.Path)
		if err == nil {
			err = os.WriteFile(path, []byte(in.Content), 0o600)
		}
		return text{"Successfully wrote to " + in.Path}, err
	})
}

func (o *office) addMemory(s *mcp.Server) {
	matching := func(fits func(entity) bool) (found graph, err error) {
		found = graph{[]entity{}, []relation{}}
		var names []string
		for _, e := range o.Graph.Entities {
			if fits(e) {
				found.Entities = append(found.Entities, e)
				names = append(names, e.Name)
			}
		}
		for _, r := range o.Graph.Relations {
			if slices.Contains(names, r.From) || slices.Contains(names, r.To) {
				found.Relations = append(found.Relations, r)
			}
		}
		return found, nil
	}
	type search struct {
		Query string `json:"query" jsonschema:"The search query to match against entity names, types, and observation content"`
	}
	add(o, s, "search_nodes", "Search for nodes in the knowledge graph based on a query", reads, func(in search) (graph, error) {
		return matching(func(e entity) bool {
			all := strings.ToLower(strings.Join(append([]string{e.Name, e.EntityType}, e.Observations...), "\n"))
			return strings.Contains(all, strings.ToLower(in.Query))
		})
	})
	type names struct {
		Names []string `json:"names" jsonschema:"An array of entity names to retrieve"`
	}
	add(o, s, "open_nodes", "Open specific nodes in the knowledge graph by their names", reads, func(in names) (graph, error) {
		return matching(func(e entity) bool { return slices.Contains(in.Names, e.Name) })
	})
	type observation struct {
		EntityName string   `json:"entityName" jsonschema:"The name of the entity to add the observations to"`
		Contents   []string `json:"contents" jsonschema:"An array of observation contents to add"`
	}
	type observations struct {
		Observations []observation `json:"observations"`
	}
	type added struct {
		EntityName        string   `json:"entityName"`
		AddedObservations []string `json:"addedObservations"`
	}
	type results struct {
		Results []added `json:"results"`
	}
	add(o, s, "add_observations", "Add new observations to existing entities in the knowledge graph", adds, func(in observations) (out results, err error) {
		for _, new := range in.Observations {
			i := slices.IndexFunc(o.Graph.Entities, func(e entity) bool { return e.Name == new.EntityName })
			if i < 0 {
				return out, fmt.Errorf("entity with name %s not found", new.EntityName)
			}
			e := &o.Graph.Entities[i]
			e.Observations = append(e.Observations, new.Contents...)
			out.Results = append(out.Results, added{new.EntityName, new.Contents})
		}
		return out, nil
	})
}

func (o *office) addDatabase(s *mcp.Server) {
	const tables = "The tables are customers (id, name, city, email), orders (id, customer_id, placed, total, status: open, shipped or cancelled) and products (id, name, stock, reorder_at, price)."
	type query struct {
		Table string `json:"table"`
		Where row    `json:"where,omitempty" jsonschema:"the values that columns must have"`
	}
	type rows struct {
		Rows []row `json:"rows"`
	}
	match := func(where row) func(row) bool {
		return func(r row) bool {
			for column, value := range where {
				if fmt.Sprint(r[column]) != fmt.Sprint(value) {
					return false
				}
			}
			return true
		}
	}
	add(o, s, "find_rows", "Find the rows of a table whose columns equal the given values. "+tables, reads, func(in query) (rows, error) {
		found := rows{[]row{}}
		all, ok := o.Tables[in.Table]
		if !ok {
			return found, errors.New("there is no table " + in.Table)
		}
		for _, r := range all {
			if match(in.Where)(r) {
				found.Rows = append(found.Rows, maps.Clone(r))
			}
		}
		return found, nil
	})
	type insert struct {
		Table  string `json:"table"`
		Values row    `json:"values" jsonschema:"by column, without the id, which the database chooses"`
	}
	add(o, s, "insert_row", "Insert a row into a table and return it.", adds, func(in insert) (row, error) {
		r := row{"id": len(o.Tables[in.Table]) + 1}
		maps.Copy(r, in.Values)
		o.Tables[in.Table] = append(o.Tables[in.Table], r)
		return maps.Clone(r), nil
	})
	type update struct {
		Table string `json:"table"`
		ID    int    `json:"id"`
		Set   row    `json:"set" jsonschema:"the new values, by column"`
	}
	add(o, s, "update_row", "Change columns of one row of a table and return the row.", adds, func(in update) (row, error) {
		i := slices.IndexFunc(o.Tables[in.Table], match(row{"id": in.ID}))
		if i < 0 {
			return nil, errors.New("there is no such row")
		}
		r := o.Tables[in.Table][i]
		maps.Copy(r, in.Set)
		return maps.Clone(r), nil
	})
}

func (o *office) addMail(s *mcp.Server) {
	type filter struct {
		From       string `json:"from,omitempty" jsonschema:"part of the sender's address"`
		Subject    string `json:"subject,omitempty" jsonschema:"part of the subject"`
		UnreadOnly bool   `json:"unread_only,omitempty"`
	}
	type mails struct {
		Mails []mail `json:"mails"`
	}
	add(o, s, "list_mails", "List the mails in the inbox, oldest first, without their bodies.", reads, func(in filter) (mails, error) {
		list := mails{[]mail{}}
		for _, m := range o.Mails {
			if strings.Contains(m.From, in.From) && strings.Contains(m.Subject, in.Subject) && (m.Unread || !in.UnreadOnly) {
				m.Body = ""
				list.Mails = append(list.Mails, m)
			}
		}
		return list, nil
	})
	type which struct {
		ID string `json:"id"`
	}
	add(o, s, "read_mail", "Read a mail with its body. It stays unread.", reads, func(in which) (mail, error) {
		for _, m := range o.Mails {
			if m.ID == in.ID {
				return m, nil
			}
		}
		return mail{}, errors.New("there is no mail " + in.ID)
	})
	type draft struct {
		To      string `json:"to" jsonschema:"the address of the recipient"`
		Subject string `json:"subject"`
		Body    string `json:"body"`
	}
	add(o, s, "send_mail", "Send a mail.", adds, func(in draft) (which, error) {
		id := fmt.Sprint("sent-", len(o.sent)+1)
		o.sent = append(o.sent, mail{ID: id, To: in.To, Subject: in.Subject, Body: in.Body})
		return which{id}, nil
	})
}
