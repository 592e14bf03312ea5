package output

import (
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

type Form uint8

const (
	whole   Form = iota // body is the message
	result              // body is the result of a response
	failure             // body is the error of a response
)

// Message is one outgoing message, or a batch of them. Responses are kept in parts, so that a large result is never
// copied.
type Message struct {
	Batch []Message // written as an array instead of body; nil for a single message

	form Form
	Keep bool // not to be dropped for newer ones
	ID   jsonrpc.ID
	Body []byte

	Payer string // the caller who is charged for it
	Paid  int    // bytes charged; settle returns them
	Free  func() // takes back the memory of body once it is written; may be nil
}

// SmallMessage is the size of answers that a request pays for when it is access.Admitted, and of other messages that
// must not be lost when their caller has no bytes left.
const SmallMessage = 1 << 10

// pay charges the message to its payer, unless that is done. It reports false if the payer has no room for it.
func (m *Message) pay(b *limit.Budget) bool {
	size := m.Size()
	switch {
	case m.Paid > 0, m.Batch != nil: // then its parts are paid for
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

// Settle returns what was charged for messages that are written or dropped.
func Settle(b *limit.Budget, ms ...Message) {
	for i := 0; i < len(ms); {
		payer, sum := ms[i].Payer, 0
		for ; i < len(ms) && ms[i].Payer == payer; i++ {
			sum += ms[i].Paid
			if ms[i].Free != nil {
				ms[i].Free()
			}
			Settle(b, ms[i].Batch...)
		}
		if sum > 0 {
			b.Release(payer, sum)
		}
	}
}

// Whole returns the message for a whole notification or request.
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

func (m Message) Size() int {
	size := len(m.Body) + len(m.ID) + 64
	for i := range m.Batch {
		size += m.Batch[i].Size()
	}
	return size
}

// appendHead appends what stands before the body.
func (m Message) appendHead(b []byte) []byte {
	if m.form == whole {
		return b
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

// tail is what stands after the body.
func (m Message) tail() string {
	if m.form == whole {
		return ""
	}
	return "}"
}

// Append appends the whole message.
func (m Message) Append(b []byte) []byte {
	if m.Batch == nil {
		return append(append(m.appendHead(b), m.Body...), m.tail()...)
	}
	for i, part := range m.Batch {
		b = part.Append(append(b, separator(i)))
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
func (m Message) put(b []byte, write func(b []byte) error) ([]byte, error) {
	if m.Batch != nil {
		for i, part := range m.Batch {
			var err error
			if b, err = part.put(append(b, separator(i)), write); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	b = m.appendHead(b)
	body := jsonrpc.SingleLine(m.Body)
	if len(body) < largeBody {
		return append(append(b, body...), m.tail()...), nil
	}
	err := write(b)
	if err == nil {
		err = write(body)
	}
	return append(b[:0], m.tail()...), err
}
