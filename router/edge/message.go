package edge

import (
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

type form uint8

const (
	whole   form = iota // body is the message
	result              // body is the result of a response
	failure             // body is the error of a response
)

// message is one outgoing message, or a batch of them. Responses are kept in parts, so that a large result is never
// copied.
type message struct {
	batch []message // written as an array instead of body; nil for a single message

	form form
	keep bool // not to be dropped for newer ones
	id   jsonrpc.ID
	body []byte

	payer string // the caller who is charged for it
	paid  int    // bytes charged; settle returns them
	free  func() // takes back the memory of body once it is written; may be nil
}

// smallMessage is the size of answers that a request pays for when it is access.Admitted, and of other messages that
// must not be lost when their caller has no bytes left.
const smallMessage = 1 << 10

// pay charges the message to its payer, unless that is done. It reports false if the payer has no room for it.
func (m *message) pay(b *limit.Budget) bool {
	size := m.size()
	switch {
	case m.paid > 0, m.batch != nil: // then its parts are paid for
		return true
	case !m.keep:
		if !b.ReserveSpare(m.payer, size) {
			return false
		}
	case size <= smallMessage:
		b.Charge(m.payer, size)
	case !b.Reserve(m.payer, size):
		return false
	}
	m.paid = size
	return true
}

// settle returns what was charged for messages that are written or dropped.
func settle(b *limit.Budget, ms ...message) {
	for i := 0; i < len(ms); {
		payer, sum := ms[i].payer, 0
		for ; i < len(ms) && ms[i].payer == payer; i++ {
			sum += ms[i].paid
			if ms[i].free != nil {
				ms[i].free()
			}
			settle(b, ms[i].batch...)
		}
		if sum > 0 {
			b.Release(payer, sum)
		}
	}
}

func wholeMessage(b []byte) message { return message{body: b} }

func (m message) size() int {
	size := len(m.body) + len(m.id) + 64
	for i := range m.batch {
		size += m.batch[i].size()
	}
	return size
}

// appendHead appends what stands before the body.
func (m message) appendHead(b []byte) []byte {
	if m.form == whole {
		return b
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if m.id == "" {
		b = append(b, "null"...)
	}
	b = append(b, m.id...)
	if m.form == result {
		return append(b, `,"result":`...)
	}
	return append(b, `,"error":`...)
}

// tail is what stands after the body.
func (m message) tail() string {
	if m.form == whole {
		return ""
	}
	return "}"
}

// append appends the whole message.
func (m message) append(b []byte) []byte {
	if m.batch == nil {
		return append(append(m.appendHead(b), m.body...), m.tail()...)
	}
	for i, part := range m.batch {
		b = part.append(append(b, separator(i)))
	}
	return append(b, ']')
}

// separator is what stands before a message of a batch.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// put appends the message to b, where each body is on a single line. Large bodies are written by themselves, after
// what is in b.
func (m message) put(b []byte, write func(b []byte) error) ([]byte, error) {
	if m.batch != nil {
		for i, part := range m.batch {
			var err error
			if b, err = part.put(append(b, separator(i)), write); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	b = m.appendHead(b)
	body := jsonrpc.SingleLine(m.body)
	if len(body) < largeBody {
		return append(append(b, body...), m.tail()...), nil
	}
	err := write(b)
	if err == nil {
		err = write(body)
	}
	return append(b[:0], m.tail()...), err
}

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	off   int
}

func (f *fifo[T]) len() int { return len(f.items) - f.off }

func (f *fifo[T]) push(v T) {
	if f.off > 0 && len(f.items) == cap(f.items) && f.off >= len(f.items)/2 {
		n := copy(f.items, f.items[f.off:])
		clear(f.items[n:])
		f.items, f.off = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.off]
	f.items[f.off] = zero
	if f.off++; f.off == len(f.items) {
		f.items, f.off = f.items[:0], 0
	}
	return v
}
