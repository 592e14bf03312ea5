package inbound

import (
	"bytes"
	"errors"
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

// Of an announced body for which its caller has no room hardly anything is read.
func TestBodyWithoutRoom(t *testing.T) {
	const size = 1 << 20
	budget := limit.NewBudget(limit.Bounds{Requests: 1, Total: size, Own: size}, nil)
	budget.Charge("caller", size/2)
	body := bytes.NewReader(bytes.Repeat([]byte(" "), size))
	r := httptest.NewRequest(http.MethodPost, "/mcp", io.NopCloser(body))
	r.ContentLength = size
	if _, err := ReadBody(httptest.NewRecorder(), r, budget, "caller", size); !errors.Is(err, ErrOverloaded) {
		t.Errorf("got error %v, want %v", err, ErrOverloaded)
	}
	if read := size - body.Len(); read > firstBuffer {
		t.Errorf("got %d bytes read, want %d at most", read, firstBuffer)
	}
	if got := budget.Held(); got != size/2 {
		t.Errorf("got %d bytes held, want %d as before", got, size/2)
	}
}
