package proxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// A merged list that takes over what has not changed is, byte for byte, one that is made of its parts at once.
func TestMergedListsEqualARebuild(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 5))
	names := newNaming(Config{NameLimit: 46}, []string{"a", "b", "c", "d"})
	for _, modern := range []bool{false, true} {
		key := mergedKey{surface: &Surface{p: &Proxy{}}, names: &names, method: "tools/list", modern: modern}
		var m mergedLists
		parts := []part{{server: "a"}, {server: "b"}, {server: "c"}, {server: "d"}}
		for change := range 300 {
			parts = append([]part(nil), parts...)
			items := []json.RawMessage{}
			for i := range r.IntN(4) {
				items = append(items, json.RawMessage(fmt.Sprintf(`{"name":"t%d","description":"%d"}`, i, change)))
			}
			parts[r.IntN(len(parts))].items = items
			got, want := string(m.get(key, parts)), string(key.merge(parts, nil).raw)
			if got != want || !json.Valid([]byte(got)) {
				t.Fatalf("change %d: got %s, want %s", change, got, want)
			}
			if again := m.get(key, parts); &again[0] != &m.kept[len(m.kept)-1].raw[0] {
				t.Fatal("the same list is made again")
			}
		}
	}
}

// Merged lists are bounded in number and bytes, also where callers come at once.
func TestMergedListsAreBounded(t *testing.T) {
	var m mergedLists
	item := json.RawMessage(`{"name":"x","description":"` + strings.Repeat("x", 1<<20) + `"}`)
	parts := []part{{server: "a"}}
	for range 20 {
		parts[0].items = append(parts[0].items, item)
	}
	var wg sync.WaitGroup
	for i := range 3 * maxMerged {
		names := newNaming(Config{NameLimit: i}, []string{"a"})
		key := mergedKey{surface: &Surface{p: &Proxy{}}, names: &names, method: "tools/list"}
		few := parts
		if i%8 > 0 {
			few = []part{{"a", parts[0].items[:0]}}
		}
		for range 2 {
			wg.Go(func() { m.get(key, few) })
		}
		if i%16 == 0 {
			wg.Wait()
		}
	}
	wg.Wait()
	bytes := 0
	for _, l := range m.kept {
		bytes += len(l.raw)
	}
	if len(m.kept) > maxMerged || bytes != m.bytes || bytes > maxMergedBytes || bytes == 0 {
		t.Errorf("got %d lists of %d bytes, counted as %d", len(m.kept), bytes, m.bytes)
	}
}
