package rules

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

func TestDump(t *testing.T) {
	files := os.Getenv("DUMP")
	if files == "" {
		t.Skip()
	}
	w, _ := os.Create(os.Getenv("OUT"))
	bw := bufio.NewWriter(w)
	defer bw.Flush()
	type tl struct {
		Server, Name, Description string
		InputSchema, OutputSchema json.RawMessage
		Annotations               plan.Annotations
	}
	toTools := func(raw []tl) []plan.Tool {
		var tools []plan.Tool
		for _, l := range raw {
			tools = append(tools, plan.Tool{Name: l.Name, Server: l.Server, Tool: l.Name, Description: l.Description, InputSchema: l.InputSchema, OutputSchema: l.OutputSchema, Annotations: l.Annotations})
		}
		return tools
	}
	cats := map[string]Catalog{}
	for _, file := range strings.Split(files, ",") {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		s := bufio.NewScanner(f)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			var l struct {
				ID, Query, Catalog string
				Tools              []tl
				Expected           *[]struct{ Name string }
			}
			json.Unmarshal(s.Bytes(), &l)
			if l.Expected == nil {
				continue
			}
			var cat Catalog
			if l.Catalog != "" {
				name := filepath.Join(filepath.Dir(file), l.Catalog)
				if _, err := os.Stat(name); err != nil {
					name = filepath.Join(filepath.Dir(file), "..", l.Catalog)
				}
				if cats[name] == nil {
					var ls []tl
					g, err := os.Open(name)
					if err != nil {
						t.Fatal(err)
					}
					cs := bufio.NewScanner(g)
					cs.Buffer(nil, 64<<20)
					for cs.Scan() {
						var x tl
						json.Unmarshal(cs.Bytes(), &x)
						ls = append(ls, x)
					}
					cats[name] = NewCatalog(toTools(ls))
				}
				cat = cats[name]
			} else {
				cat = NewCatalog(toTools(l.Tools))
			}
			p := New(Options{})
			n := 0
			debug = func(a ask, one *call, place int, ready bool) {
				label := 0
				for _, e := range *l.Expected {
					_, en, ok := strings.Cut(e.Name, "::")
					if !ok {
						en = e.Name
					}
					if en == one.f.tool.Name {
						label = 1
					}
				}
				x := p.features(a, one.f, one.fill, place)
				row := map[string]any{"set": strings.TrimSuffix(filepath.Base(file), ".jsonl"), "id": l.ID, "y": label, "ready": ready, "x": x, "n": len(*l.Expected), "tool": one.f.tool.Name}
				b, _ := json.Marshal(row)
				bw.Write(b)
				bw.WriteByte('\n')
				n++
			}
			p.Plan(context.Background(), l.Query, cat)
		}
	}
	debug = nil
	fmt.Println("done")
}
