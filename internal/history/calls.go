package history

import (
	"encoding/binary"
	"errors"
	"time"
)

// Call describes a call that is not a step of a query. Calls are numerous and therefore stored compactly; an Entry is
// built when one is read.
type Call struct {
	Series
	At       time.Time
	Duration time.Duration
	Bytes    int // size of the result
	Attempts int
}

// Series holds the properties that many calls share. It is stored once for all of them.
type Series struct{ Caller, Outcome, Server, Tool string }

// callBytes is the approximate memory of a call, for the limits.
const callBytes = 80

// view returns an entry for reading. For a call it is built in the memory of to.
func (e *stored) view(to *Entry) *Entry {
	if e.entry != nil {
		return e.entry
	}
	ms := float64(e.took.Microseconds()) / 1000
	uses := append(to.Uses[:0], Use{Server: e.series.Server, Tool: e.series.Tool, Calls: 1, Time: ms})
	if e.series.Outcome != OutcomeOK {
		uses[0].Failed = 1
	}
	*to = Entry{
		ID: e.id, Kind: KindCall, At: time.Unix(0, e.at), Caller: e.series.Caller, Outcome: e.series.Outcome,
		Duration: ms, Bytes: e.result, Attempts: e.attempts, Uses: uses,
	}
	return to
}

// batch encodes calls. Each is a sequence of numbers: the difference of its id to the previous one's, its series, the
// difference of its start to the previous one's, its duration, the size of its result, and its attempts. The texts of
// a series follow its first use.
type batch struct {
	bytes   []byte
	numbers map[*series]uint64
	last    stored
}

func (b *batch) add(c *stored) {
	b.bytes = binary.AppendUvarint(b.bytes, c.id-b.last.id)
	n, known := b.numbers[c.series]
	if !known {
		n = uint64(len(b.numbers))
		b.numbers[c.series] = n
	}
	b.bytes = binary.AppendUvarint(b.bytes, n)
	if !known {
		for _, text := range c.series.texts() {
			b.bytes = append(binary.AppendUvarint(b.bytes, uint64(len(*text))), *text...)
		}
	}
	b.bytes = binary.AppendVarint(b.bytes, c.at-b.last.at)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(c.took))
	b.bytes = binary.AppendUvarint(b.bytes, uint64(c.result))
	b.bytes = binary.AppendUvarint(b.bytes, uint64(c.attempts))
	b.last = *c
}

// batchOf encodes the calls among entries.
func batchOf(entries []stored) batch {
	b := batch{numbers: map[*series]uint64{}}
	for i := range entries {
		if c := &entries[i]; c.entry == nil {
			b.add(c)
		}
	}
	return b
}

func (s *Series) texts() [4]*string { return [4]*string{&s.Caller, &s.Outcome, &s.Server, &s.Tool} }

var errCalls = errors.New("a batch of calls is damaged")

// readCalls calls f with each call of a batch.
func readCalls(b []byte, f func(c *stored)) (err error) {
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b, err = nil, errCalls
			return 0
		}
		b = b[size:]
		return n
	}
	var known []*series
	c := stored{bytes: callBytes}
	for len(b) > 0 {
		last := c.id
		c.id += number()
		switch n := number(); {
		case n < uint64(len(known)):
			c.series = known[n]
		case n > uint64(len(known)):
			return errCalls
		default:
			c.series = &series{}
			for _, text := range c.series.texts() {
				size := number()
				if size > uint64(len(b)) {
					return errCalls
				}
				*text, b = string(b[:size]), b[size:]
			}
			known = append(known, c.series)
		}
		later := number()
		c.at += int64(later>>1) ^ -int64(later&1) // zigzag encoding, as in binary.Varint
		c.took, c.result, c.attempts = time.Duration(number()), int(number()), int(number())
		if err != nil || c.id <= last {
			return errCalls
		}
		f(&c)
	}
	return nil
}

// withoutCalls removes the calls with the given ids from a batch.
func withoutCalls(calls []byte, gone []uint64) (kept []byte, err error) {
	left := batch{numbers: map[*series]uint64{}, bytes: make([]byte, 0, len(calls))}
	err = readCalls(calls, func(c *stored) {
		for len(gone) > 0 && gone[0] < c.id {
			gone = gone[1:]
		}
		if len(gone) == 0 || gone[0] != c.id {
			left.add(c)
		}
	})
	return left.bytes, err
}
