package downstream

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
)

// A catalog that follows changes of lists answers like one that is made of the same lists at once, whatever policy
// names the tools.
func TestCatalogChangesEqualARebuild(t *testing.T) {
	names := []string{"one", "two", "s1__one", "s2:two", "s0.one", "s1.two", "x__y", "s2__x__y"}
	for _, policy := range []string{ConflictNamespace, ConflictLastWins, ConflictError} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 3))
			var configs []ServerConfig
			for i := range 4 {
				configs = append(configs, ServerConfig{Name: fmt.Sprintf("s%d", i)})
			}
			c := newCatalog(configs, policy)
			for change := range 60 {
				lists := append([]*listing(nil), c.lists...)
				place := r.IntN(len(configs))
				lists[place] = nil
				var missing []Missing
				if r.IntN(5) > 0 {
					l := &listing{}
					for _, name := range names {
						switch r.IntN(5) {
						case 0, 1:
							l.items = append(l.items, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"%d","inputSchema":{}}`, name, r.IntN(3))))
						case 2:
							l.items = append(l.items, json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))) // quarantined
						}
					}
					l.readTools(configs[place], slog.New(slog.DiscardHandler))
					lists[place] = l
				}
				for i, l := range lists {
					if l == nil {
						missing = append(missing, Missing{Server: configs[i].Name, Reason: "unavailable"})
					}
				}
				c = c.with(lists, missing)
				fresh := newCatalog(configs, policy).with(lists, missing)
				if got, want := describe(c, names), describe(fresh, names); got != want {
					t.Fatalf("%s, seed %d, change %d: got\n%swant\n%s", policy, seed, change, got, want)
				}
				if c.with(lists, missing) != c {
					t.Fatal("the same lists make another catalog")
				}
			}
		}
	}
}

// describe tells what a catalog answers.
func describe(c *Catalog, names []string) (out string) {
	for t := range c.See(nil) {
		out += fmt.Sprintf("%s/%s is %s (%s)\n", t.Server, t.Tool.Tool, t.Name, t.Description)
	}
	notFirst := func(server, _ string) bool { return server != "s0" }
	for _, name := range names {
		for _, spelled := range []string{name, "s0." + name, "s1__" + name, "s2:" + name} {
			for _, visible := range []Visible{nil, notFirst} {
				t, err := c.Lookup(spelled, visible)
				if err != nil {
					out += fmt.Sprintf("%s: %s\n", spelled, err.Message)
				} else {
					out += fmt.Sprintf("%s: %s/%s\n", spelled, t.Server, t.Tool.Tool)
				}
			}
		}
	}
	return out + fmt.Sprint(c.conflicts, c.Missing)
}

// A change of one server makes nothing of the others anew.
func TestChangeOfOneServerSharesTheRest(t *testing.T) {
	configs := []ServerConfig{{Name: "a"}, {Name: "b"}}
	list := func(i int, names ...string) *listing {
		l := &listing{}
		for _, name := range names {
			l.items = append(l.items, json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":{}}`, name)))
		}
		l.readTools(configs[i], slog.New(slog.DiscardHandler))
		return l
	}
	a, b := list(0, "x", "y"), list(1, "z")
	first := newCatalog(configs, ConflictNamespace).with([]*listing{a, b}, nil)
	second := first.with([]*listing{a, list(1, "z", "w")}, nil)
	if !sameSlice(first.Of("a"), second.Of("a")) || len(second.Of("b")) != 2 || len(first.Of("b")) != 1 {
		t.Errorf("got %v and %v of a, %d and %d tools of b", first.Of("a"), second.Of("a"), len(first.Of("b")), len(second.Of("b")))
	}
	var changed []string
	for server := range second.Changed(first) {
		changed = append(changed, server)
	}
	if fmt.Sprint(changed) != "[b]" || !second.Later(first) || first.Later(second) {
		t.Errorf("got changed %v, later %v and %v", changed, second.Later(first), first.Later(second))
	}
	third := second.with([]*listing{a, list(1, "x")}, nil) // now x is ambiguous, so that a's is renamed
	if got := third.Of("a")[0].Name; got != "a.x" || second.Of("a")[0].Name != "x" {
		t.Errorf("got names %s and %s", got, second.Of("a")[0].Name)
	}
}
