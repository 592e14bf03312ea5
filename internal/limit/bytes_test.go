package limit_test

import (
	"encoding/json"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want limit.Bytes
		text string
	}{
		{"0", 0, "0B"},
		{"1", 1, "1B"},
		{"1023B", 1023, "1023B"},
		{"4MiB", 4 << 20, "4MiB"},
		{" 4 MiB ", 4 << 20, "4MiB"},
		{"64KiB", 64 << 10, "64KiB"},
		{"1536KiB", 1536 << 10, "1536KiB"},
		{"1KiB", 1 << 10, "1KiB"},
		{"1GiB", 1 << 30, "1GiB"},
		{"2GiB", 2 << 30, "2GiB"},
		{"3kB", 3000, "3000B"},
		{"3KB", 3000, "3000B"},
		{"5MB", 5_000_000, "5000000B"},
		{"1GB", 1_000_000_000, "1000000000B"},
		{"4611686018427387904", 1 << 62, "4294967296GiB"},
	} {
		got, err := limit.ParseBytes(c.in)
		if err != nil || got != c.want || got.String() != c.text {
			t.Errorf("ParseBytes(%q) = %d (%v), %v; want %d (%s)", c.in, int64(got), got, err, int64(c.want), c.text)
		}
		if again, err := limit.ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("ParseBytes(%q) = %v, %v; want what it was written from, %d", got, again, err, int64(got))
		}
	}
}

func TestParseBytes_Refuses(t *testing.T) {
	for _, in := range []string{"", "MiB", "-1", "-1MiB", "1.5MiB", "4mib", "4M", "4BMiB", "x", "1 2", "0x10", "9223372036854775807", "9999999999GiB", "99999999999999999999"} {
		if got, err := limit.ParseBytes(in); err == nil {
			t.Errorf("ParseBytes(%q) = %v, want an error", in, got)
		}
	}
}

func TestBytesText(t *testing.T) {
	var v struct{ N limit.Bytes }
	if err := json.Unmarshal([]byte(`{"N":"4MiB"}`), &v); err != nil || v.N != 4<<20 {
		t.Errorf("Unmarshal = %d, %v; want %d", int64(v.N), err, 4<<20)
	}
	if got, err := json.Marshal(v); err != nil || string(got) != `{"N":"4MiB"}` {
		t.Errorf("Marshal = %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"N":"many"}`), &v); err == nil {
		t.Error("Unmarshal took \"many\"")
	}
}

func FuzzParseBytes(f *testing.F) {
	f.Add("4MiB")
	f.Add("-1")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := limit.ParseBytes(s)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("ParseBytes(%q) = %d, want nothing negative", s, int64(n))
		}
		if again, err := limit.ParseBytes(n.String()); err != nil || again != n {
			t.Fatalf("ParseBytes(%q) = %v, %v; want %d", n.String(), again, err, int64(n))
		}
	})
}
