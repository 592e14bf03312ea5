package search

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// madeUp returns a tool of a server with words that tools share.
func madeUp(r *rand.Rand, server string, nth int) Tool {
	words := strings.Fields("get list send create file report weather email invoice customer ticket forecast city archive message user team price currency flight hotel")
	pick := func(n int) string {
		var out []string
		for range n {
			out = append(out, words[r.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	return tool(server, fmt.Sprintf("%s_%d", strings.ReplaceAll(pick(2), " ", "_"), nth), pick(6), fmt.Sprintf(`{"properties":{%q:{"description":%q}}}`, pick(1), pick(3)))
}

// An index that follows changes finds the same tools with the same scores as one that is made of what is there, after
// any changes and through several compactions.
func TestUpdatesEqualARebuild(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		x := New()
		now := map[string][]Tool{}
		for change := range 400 {
			server := fmt.Sprintf("server%d", r.IntN(12))
			tools := append([]Tool(nil), now[server]...)
			switch kind := r.IntN(10); {
			case kind == 0:
				tools = nil
			case kind < 4 && len(tools) > 0: // one is replaced, another dropped
				tools[r.IntN(len(tools))] = madeUp(r, server, change)
				tools = tools[:len(tools)-r.IntN(2)]
			case kind < 6 && len(tools) > 0: // another description under the same name
				tools[0].Description += " report"
			default:
				for i := range r.IntN(20) {
					tools = append(tools, madeUp(r, server, change*100+i))
				}
			}
			now[server] = tools
			x.Update(server, tools)
			if change%4 == 3 && len(x.docs) > x.live {
				x.compact()
			}
			if change%25 != 24 {
				continue
			}
			fresh := New()
			for name, list := range now {
				fresh.Update(name, list)
			}
			if x.Len() != fresh.Len() {
				t.Fatalf("seed %d, change %d: got %d tools, want %d", seed, change, x.Len(), fresh.Len())
			}
			for _, query := range []string{"weather in a city", "send the invoice to a customer and create a ticket", "price of flights and hotels, then email the report", "nothing"} {
				for _, opts := range []SearchOptions{{}, {Limit: 40, Allow: func(server, name string) bool { return len(server)+len(name)%3 > 8 }}} {
					got, want := x.Search(query, opts), fresh.Search(query, opts)
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("seed %d, change %d, %q: got %v, want %v", seed, change, query, got, want)
					}
				}
			}
		}
	}
}

// Tools that are replaced again and again do not make the index grow.
func TestReplacedToolsAreForgotten(t *testing.T) {
	x := New()
	for i := range 3 * minDead {
		x.Update("a", []Tool{tool("a", "get_report", fmt.Sprintf("Revision %d of the report", i))})
	}
	if n := len(x.docs); n > minDead+2 {
		t.Errorf("got %d slots for one tool", n)
	}
	if hits := x.Search("report revision", SearchOptions{}); len(hits) != 1 {
		t.Errorf("got %v, want the one tool", ids(hits))
	}
}

func BenchmarkManyServers(b *testing.B) {
	x := New()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1000 {
		server := fmt.Sprintf("server%d", i)
		var tools []Tool
		for j := range 100 {
			one := madeUp(r, server, j)
			one.Description += fmt.Sprintf(" of kind%d and topic%d", r.IntN(500), r.IntN(5000))
			tools = append(tools, one)
		}
		x.Update(server, tools)
	}
	const question = "send an email to the customer about the invoice of kind77"
	for name, question := range map[string]string{"100k": question, "100k-long": strings.Repeat(question+", create a ticket in the city for the weather"+
		" report, and look up prices of flights, hotels and the calendar for meetings next week. ", 8)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Search(question, SearchOptions{})
			}
		})
	}
	b.Run("update-one", func(b *testing.B) {
		b.ReportAllocs()
		var tools []Tool
		for j := range 100 {
			tools = append(tools, madeUp(r, "server5", j))
		}
		for i := 0; b.Loop(); i++ {
			tools[0].Description = fmt.Sprintf("Revision %d", i)
			x.Update("server5", tools)
		}
	})
}
