package output

import (
	"io"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// form tells how the body of a message is completed.
type form uint8

const (
	whole   form = iota // body is the message
	result              // body is the result of a response
	failure             // body is the error of a response
	array               // the message is the array of its parts
)

// Message is one outgoing message. put and WriteMessage write a large body without copying it; Append copies it.
type Message struct {
	form form
	Keep bool // not to be dropped for newer messages
	ID   jsonrpc.ID
	Body []byte

	parts []Message // of an array

	Payer string // id of the caller that is charged for it
	Paid  int    // bytes charged; Release releases them
	Free  func() // recycles the memory of Body once it is written; may be nil
}

// SmallMessage is the size in bytes up to which undroppable messages are charged even beyond the payer's limit. This is
// safe because admitting a request charges as much for its response in advance.
const SmallMessage = 1 << 10

// Whole returns the message for a complete notification or request.
func Whole(b []byte) Message { return Message{Body: b} }

// Result returns a response with a raw result.
func Result(id jsonrpc.ID, raw []byte) Message {
	return Message{form: result, Keep: true, ID: id, Body: raw}
}

// Error returns a response with an error.
func Error(id jsonrpc.ID, err *jsonrpc.Error) Message { return RawError(id, err.Encode()) }

// RawError returns a response with a raw error object.
func RawError(id jsonrpc.ID, raw []byte) Message {
	return Message{form: failure, Keep: true, ID: id, Body: raw}
}

// IsError reports whether the message is a response with an error.
func (m Message) IsError() bool { return m.form == failure }

// Size returns the approximate bytes that the message takes in memory.
func (m Message) Size() int {
	n := len(m.Body) + len(m.ID) + 64
	for _, part := range m.parts {
		n += part.Size()
	}
	return n
}

// tryCharge charges the message to its payer once. It reports false if that exceeds the payer's limit.
func (m *Message) tryCharge(b *limit.Budget) bool {
	size := m.Size()
	switch {
	case m.Paid > 0:
		return true
	case !m.Keep:
		if !b.ReserveSpare(m.Payer, size) {
			return false
		}
	case size <= SmallMessage:
		b.Charge(m.Payer, size)
	case !b.Reserve(m.Payer, size):
		return false
	}
	m.Paid = size
	return true
}

// forceCharge charges the message to its payer regardless of the limits, unless it is charged already.
func (m *Message) forceCharge(b *limit.Budget) {
	if m.Paid == 0 {
		m.Paid = m.Size()
		b.Charge(m.Payer, m.Paid)
	}
}

// Release releases the charges of messages that are written or dropped and of their parts, and calls their Free.
func Release(b *limit.Budget, ms ...Message) {
	for _, m := range ms {
		if m.parts != nil {
			Release(b, m.parts...)
		}
	}
	for i := 0; i < len(ms); {
		payer, sum := ms[i].Payer, 0
		for ; i < len(ms) && ms[i].Payer == payer; i++ {
			sum += ms[i].Paid
			if ms[i].Free != nil {
				ms[i].Free()
			}
		}
		if sum > 0 {
			b.Release(payer, sum)
		}
	}
}

// appendHead appends the bytes before the body.
func (m Message) appendHead(b []byte) []byte {
	switch m.form {
	case whole:
		return b
	case array:
		return append(b, '[')
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if m.ID == "" {
		b = append(b, "null"...)
	}
	b = append(b, m.ID...)
	if m.form == result {
		return append(b, `,"result":`...)
	}
	return append(b, `,"error":`...)
}

// tail returns the bytes after the body.
func (m Message) tail() string {
	switch m.form {
	case whole:
		return ""
	case array:
		return "]"
	}
	return "}"
}

// Append appends the whole message to b.
func (m Message) Append(b []byte) []byte {
	b = append(m.appendHead(b), m.Body...)
	for i, part := range m.parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = part.Append(b)
	}
	return append(b, m.tail()...)
}

// largeBody is the size from which a body is written directly instead of being copied.
const largeBody = 32 << 10

// put appends the message to b with its body on a single line. If the body is large, it writes b and the body instead
// and returns the rest.
func (m Message) put(b []byte, w io.Writer) ([]byte, error) {
	b = m.appendHead(b)
	var err error
	for i, part := range m.parts {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = part.put(b, w); err != nil {
			return b, err
		}
		if len(b) >= largeBody {
			if _, err = w.Write(b); err != nil {
				return b, err
			}
			b = b[:0]
		}
	}
	body := jsonrpc.SingleLine(m.Body)
	if len(body) < largeBody {
		return append(append(b, body...), m.tail()...), nil
	}
	if _, err = w.Write(b); err == nil {
		err = writePieces(w, body)
	}
	return append(b[:0], m.tail()...), err
}

// pieceSize is the number of bytes of a large body per write, each within one writeTimeout.
const pieceSize = 1 << 20

// writePieces writes a large body in pieces, so that the write deadline applies to each.
func writePieces(w io.Writer, body []byte) error {
	for len(body) > 0 {
		n, err := w.Write(body[:min(len(body), pieceSize)])
		if err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// Batch collects the responses to a batch of requests and sends them as one array when the last is complete.
type Batch struct {
	budget *limit.Budget
	payer  string        // charged for the array
	sender func() Sender // for the array or for one request
	mu     sync.Mutex
	parts  []Message // without a body until they are set
	open   int       // requests that are not done
}

// NewBatch returns a batch of n messages. sender returns a Sender to the stream of the batch. The calling function
// counts as one request until it calls Done.
func NewBatch(budget *limit.Budget, payer string, sender func() Sender, n int) *Batch {
	return &Batch{budget: budget, payer: payer, sender: sender, parts: make([]Message, n), open: 1}
}

// batchSender sends the messages of one request of a batch. Only the response is collected; other messages are sent at
// once.
type batchSender struct {
	Sender
	batch  *Batch
	index  int
	mu     sync.Mutex
	closed bool
}

// Sender returns the Sender of the request at an index.
func (b *Batch) Sender(i int) Sender { return &batchSender{Sender: b.sender(), batch: b, index: i} }

// Send implements Sender.
func (s *batchSender) Send(m Message, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case !last:
		return s.Sender.Send(m, false)
	}
	s.closed = true
	s.batch.Set(s.index, m)
	return true
}

// Add adds one pending request.
func (b *Batch) Add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// Set sets the response to the request at an index.
func (b *Batch) Set(i int, m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Paid == 0 {
		m.Payer = b.payer
	}
	m.forceCharge(b.budget)
	b.parts[i] = m
}

// Done completes one request. The last call sends the array unless it is empty.
func (b *Batch) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open--; b.open > 0 {
		return
	}
	parts := slices.DeleteFunc(b.parts, func(m Message) bool { return m.Body == nil }) // of cancelled requests
	if len(parts) == 0 {
		return
	}
	m := Message{form: array, Keep: true, parts: parts, Payer: b.payer, Paid: 1}
	b.budget.Charge(m.Payer, m.Paid) // the rest is charged with its parts
	if !b.sender().Send(m, true) {
		Release(b.budget, m)
	}
}
