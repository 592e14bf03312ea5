package rules

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// TestLargeCatalog: a catalog as large as the largest of docs/evaluation.md is searched and planned over within its
// limit of memory.
func TestLargeCatalog(t *testing.T) {
	const tools, limit = 12_727, 150 << 20
	var list []plan.Tool
	for i := range tools {
		one := tool(fmt.Sprintf("get_record%d_of_kind%d", i, i%97), fmt.Sprintf("Retrieve record %d with the details of kind %d and of topic%d", i, i%97, i%3001),
			fmt.Sprintf(`{"properties":{"field%d":{"type":"string","description":"Value of field %d"}},"required":["field%d"]}`, i%500, i, i%500))
		one.Server = fmt.Sprintf("server%d", i%1485)
		list = append(list, one)
	}
	catalog := NewCatalog(append(list, webSearch, calculate, weather))
	for _, q := range []string{"Get the weather forecast for Oslo", "Retrieve record 77 of kind 12, then the weather in Rome", "latest news and 15% of 2500"} {
		if p := answer(t, q, catalog); len(p.Steps) == 0 {
			t.Errorf("%q: got no plan: %s", q, p.Note)
		}
	}
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > limit {
		t.Errorf("the heap is %d MiB, want at most %d", after.HeapAlloc>>20, limit>>20)
	}
	runtime.KeepAlive(catalog)
}
