package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/sse"
)

var errFull = errors.New("full")

// ledger is memory that counts what it gives, up to a bound.
type ledger struct{ given, most int }

func (l *ledger) Extend(b, part []byte, _ int) ([]byte, error) {
	if l.given += len(part); l.given > l.most {
		return nil, errFull
	}
	return append(b, part...), nil
}

// A long event is put together in Memory, and what is kept of it comes from there, too; a short one needs none.
func TestMemory(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	stream := "data: short\n\ndata: " + long + "\n\ndata: end\n\n"
	for _, tc := range []struct {
		most, given int
		err         error
	}{
		{1 << 20, len("data: ") + 2*len(long), io.EOF},
		{150_000, len("data: ") + 2*len(long), errFull},
		{1, 16 << 10, errFull},
	} {
		l := ledger{most: tc.most}
		r := sse.NewReader(strings.NewReader(stream), 1<<20)
		r.Memory = &l
		var got []string
		var err error
		for err == nil {
			var e sse.Event
			if e, err = r.Next(); err == nil {
				got = append(got, string(e.Data))
			}
		}
		r.Free()
		want := []string{"short"}
		if tc.err == io.EOF {
			want = append(want, long, "end")
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || !errors.Is(err, tc.err) || l.given != tc.given {
			t.Errorf("with %d bytes of memory: got %d events, %v and %d bytes given; want %d, %v and %d",
				tc.most, len(got), err, l.given, len(want), tc.err, tc.given)
		}
	}
}
