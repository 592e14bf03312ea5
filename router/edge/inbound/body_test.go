package inbound

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// An announced body is hardly copied while it comes: what is allocated in all is little more than its size.
func TestLargeBodyIsCopiedOnce(t *testing.T) {
	const size = 4 << 20
	budget := limit.NewBudget(limit.Default().Bounds(), nil)
	body := bytes.Repeat([]byte(" "), size)
	r := httptest.NewRequest(http.MethodPost, "/mcp", io.NopCloser(bytes.NewReader(body)))
	r.ContentLength = size
	w := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := ReadBody(w, r, budget, "caller", size)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != size {
		t.Fatalf("got %d bytes and error %v, want %d", len(got), err, size)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size*5/4 {
		t.Errorf("got %d KiB allocated for a body of %d KiB, want a quarter more at most", allocated>>10, size>>10)
	}
	if budget.Held() != 0 {
		t.Errorf("got %d bytes held after reading, want none", budget.Held())
	}
}
