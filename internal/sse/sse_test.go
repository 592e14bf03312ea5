package sse_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/sse"
)

var eventSeeds = []string{
	"", "\n", ":\n\n", "data\n\n", "data:\n\n", "data: a\n\n", "data:a\ndata: b\n\n", "data: a\r\n\r\n", "data: a\n", "data: a",
	"event: message\nid: 7\ndata: {\"a\":1}\n\n", "id: 1\n\n", "id: 1\ndata\n\nid\ndata: x\n\n", "retry: 10\n\n", "retry: x\nretry: -1\nretry: 99999999999\n\n",
	": comment\n\nevent: ping\n\ndata: after\n\n", "id: a\x00b\ndata: x\n\n", "unknown: x\ndata: y\n\n", "data:  two spaces\n\n", "data: " + strings.Repeat("x", 5000) + "\n\n",
	"data: " + strings.Repeat("x", 5000) + "\ndata: " + strings.Repeat("y", 5000) + "\ndata: z\n\n", strings.Repeat("data:\n", 100) + "\n", "\xef\xbb\xbfdata: x\n\n",
	"data: a\r\r", "data: a\rdata: b\r\n\r\ndata: c\n\r", "data: a\r", "\r\r\n\rdata: x\r\n\n", "data: " + strings.Repeat("x", 20_000) + "\rid: 1\r\r",
}

// plainEvents reads events in the plainest way, by the HTML standard, with lines that end in LF, CR or CRLF.
func plainEvents(text string) (events [][3]string, retry time.Duration) {
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	lines = lines[:len(lines)-1] // what follows the last line end is no line
	var name, id, data string
	seen := false
	for _, line := range lines {
		if line == "" {
			if seen || id != "" {
				events = append(events, [3]string{name, id, data})
			}
			name, id, data, seen = "", "", "", false
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				retry = time.Duration(ms) * time.Millisecond
			}
		case "data":
			if seen {
				data += "\n"
			}
			data, seen = data+value, true
		}
	}
	return events, retry
}

// readAll returns all events of r as name, id and data, and the error that ended them.
func readAll(r io.Reader, most int) (events [][3]string, retry time.Duration, err error) {
	er := sse.NewReader(r, most)
	defer er.Free()
	for {
		e, err := er.Next()
		if err != nil {
			return events, er.Retry(), err
		}
		events = append(events, [3]string{e.Name, e.ID, string(e.Data)})
	}
}

func FuzzEvents(f *testing.F) {
	for _, s := range eventSeeds {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint8) {
		var r io.Reader = bytes.NewReader(text)
		if chunk > 0 {
			r = &chunks{r, int(chunk)}
		}
		got, retry, err := readAll(r, 1<<20)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v, want the end", err)
		}
		want, wantRetry := plainEvents(string(text))
		if !reflect.DeepEqual(got, want) || retry != wantRetry {
			t.Errorf("got  %q %v\nwant %q %v", got, retry, want, wantRetry)
		}
		// Whatever the bound, what passes is within it.
		bounded, _, _ := readAll(bytes.NewReader(text), 10)
		for _, e := range bounded {
			if len(e[2]) > 10 {
				t.Errorf("got %d bytes of data over a bound of 10", len(e[2]))
			}
		}
	})
}

// chunks reads a few bytes at a time.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.n)]) }

func TestEventBounds(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		events     int
		fine       bool
	}{
		{"at the bound", "data:" + strings.Repeat("x", 94) + "\n\n", 1, true},
		{"a line over it", "data:" + strings.Repeat("x", 200) + "\n\n", 0, false},
		{"an endless line", "data:" + strings.Repeat("x", 100_000), 0, false},
		{"many lines over it", strings.Repeat("data:xxxxxxxxx\n", 20) + "\n", 0, false},
		{"many events", strings.Repeat("data:xxxxxxxxx\n\n", 200), 200, true},
		{"a long comment", ":" + strings.Repeat("x", 200) + "\n\n", 0, false},
		{"many comments", strings.Repeat(": x\n", 200) + "data: y\n\n", 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, _, err := readAll(strings.NewReader(tc.text), 100)
			if len(events) != tc.events || errors.Is(err, io.EOF) != tc.fine {
				t.Errorf("got %d events, %v; want %d, the end %v", len(events), err, tc.events, tc.fine)
			}
		})
	}
	if _, _, err := readAll(iotest.TimeoutReader(strings.NewReader(strings.Repeat("data: x\n\n", 5000))), 1000); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

// A lenient reader takes an event that lacks its blank line, and a last line that is complete but for its end.
func TestLenient(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"data: whole", []string{"message whole"}},
		{"data: cut", nil},
		{"data: a\ndata: cut", []string{"message a"}},
		{"event: x\ndata: a\n", []string{"x a"}},
		{"data: a\n\nevent: x\n", []string{"message a"}},
		{"id: 1\n", nil},
		{"error: full\n\n", []string{"error full"}},
		{"", nil},
	} {
		t.Run(tc.text, func(t *testing.T) {
			er := sse.NewReader(strings.NewReader(tc.text), 100)
			er.Whole, er.ErrorField = func(line []byte) bool { return strings.HasSuffix(string(line), "whole") }, true
			var got []string
			for {
				e, err := er.Next()
				if err == nil {
					got = append(got, cmp.Or(e.Name, "message")+" "+string(e.Data))
					continue
				}
				if !errors.Is(err, io.EOF) {
					t.Errorf("got %v, want the end", err)
				}
				break
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// BenchmarkNext measures events of 200 bytes.
func BenchmarkNext(b *testing.B) {
	text := strings.Repeat("event: message\ndata: "+strings.Repeat("x", 200)+"\n\n", 1000)
	b.ReportAllocs()
	for b.Loop() {
		er := sse.NewReader(strings.NewReader(text), 1<<20)
		for range 1000 {
			if _, err := er.Next(); err != nil {
				b.Fatal(err)
			}
		}
		er.Free()
	}
}
