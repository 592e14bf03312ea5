package search

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
)

// A catalog as large as the largest of docs/evaluation.md: heap after collection, and the time to index it.
func BenchmarkLargeCatalog(b *testing.B) {
	servers := largeCatalog()
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := New()
		for name, tools := range servers {
			x.Update(name, tools)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "index-MiB")
		b.ReportMetric(float64(after.HeapAlloc)/(1<<20), "heap-MiB")
		runtime.KeepAlive(x)
	}
}

func largeCatalog() map[string][]Tool {
	servers := map[string][]Tool{}
	for i := range 12_727 {
		name := fmt.Sprintf("server%d", i%1485)
		t := Tool{ID: fmt.Sprintf("%s::tool%d", name, i), Server: name, Name: fmt.Sprintf("get_record%d_of_kind%d", i, i%97),
			Description: fmt.Sprintf("Retrieve record %d with the details of kind %d and of topic%d", i, i%97, i%3001)}
		t.InputSchema = json.RawMessage(fmt.Sprintf(`{"properties":{"field%d":{"type":"string","description":"Value of field %d"}}}`, i%500, i))
		servers[name] = append(servers[name], t)
	}
	return servers
}

func TestUpdateTouchesOneServerAlone(t *testing.T) {
	x := filled()
	mail := x.servers["mail"]
	kept := x.docs[mail[0]].terms
	x.Update("weather", []Tool{tool("weather", "get_tides", "Tides of a coast")})
	if &x.docs[mail[0]].terms[0] != &kept[0] {
		t.Error("a tool of another server is analysed again")
	}
}
