package llm

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "", -1},
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 0.5 ", 500 * time.Millisecond},
		{"Retry-After", "0", 0},
		{"Retry-After", "-3", -1},
		{"Retry-After", "3600", 20 * time.Second},
		{"Retry-After", "1e300", 20 * time.Second},
		{"Retry-After", "NaN", -1},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second},
		{"Retry-After", "Fri, 02 Jan 2026 04:04:15 GMT", 20 * time.Second},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"Retry-After", "tomorrow", -1},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After-Ms", "x", -1},
	} {
		h := http.Header{}
		h.Set(row.header, row.value)
		if got := retryAfter(h, now); got != row.want {
			t.Errorf("%s %q: got %v, want %v", row.header, row.value, got, row.want)
		}
	}
}
