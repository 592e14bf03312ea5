package output

import (
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// form tells how the body of a message is completed.
type form uint8

const (
	whole   form = iota // body is the message
	result              // body is the result of a response
	failure             // body is the error of a response
)

// Message is one outgoing message or batch. The parts of a response are written in sequence, so that a large result
// is never copied.
type Message struct {
	batch []Message // written as an array instead of Body; nil for a single message

	form form
	Keep bool // not to be dropped for newer messages
	ID   jsonrpc.ID
	Body []byte

	Payer string // id of the caller that is charged for it
	Paid  int    // bytes charged; Settle releases them
	Free  func() // recycles the memory of Body once it is written; may be nil
}

// SmallMessage is the size in bytes up to which undroppable messages are charged even beyond the payer's limit.
// Admitting a request charges as much for its response.
const SmallMessage = 1 << 10

// pay charges the message to its payer once. It reports false if that exceeds the payer's limit.
func (m *Message) pay(b *limit.Budget) bool {
	size := m.Size()
	switch {
	case m.Paid > 0, m.batch != nil: // the parts of a batch are already charged
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

// Settle releases the charges of messages that are written or dropped.
func Settle(b *limit.Budget, ms ...Message) {
	for i := 0; i < len(ms); {
		payer, sum := ms[i].Payer, 0
		for ; i < len(ms) && ms[i].Payer == payer; i++ {
			sum += ms[i].Paid
			if ms[i].Free != nil {
				ms[i].Free()
			}
			Settle(b, ms[i].batch...)
		}
		if sum > 0 {
			b.Release(payer, sum)
		}
	}
}

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

// Size returns the approximate bytes that the message takes in memory.
func (m Message) Size() int {
	size := len(m.Body) + len(m.ID) + 64
	for i := range m.batch {
		size += m.batch[i].Size()
	}
	return size
}

// appendHead appends the bytes before the body.
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

// tail returns the bytes after the body.
func (m Message) tail() string {
	if m.form == whole {
		return ""
	}
	return "}"
}

// Append appends the whole message to b.
func (m Message) Append(b []byte) []byte {
	if m.batch == nil {
		return append(append(m.appendHead(b), m.Body...), m.tail()...)
	}
	for i, part := range m.batch {
		b = part.Append(append(b, separator(i)))
	}
	return append(b, ']')
}

// separator returns the byte that precedes item i of a batch.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// put appends the message to b with its body on a single line. If the body is large, it writes b and the body instead
// and returns the rest.
func (m Message) put(b []byte, write func(b []byte) error) ([]byte, error) {
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
