package otlp

import (
	"io"

	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// batch is a sequence of ended spans. A span is encoded when it is sent: a request waits for less, and a waiting span
// takes a third of its bytes.
type batch struct {
	spans []record
	more  []byte // the further fields of all spans
	bytes int    // encoded size of the spans
}

// record is the data of a span that all spans have.
type record struct {
	trace        trace.TraceID
	id, parent   trace.SpanID // parent: zero = none
	began, ended uint64       // ns since 1970
	shape        *tracing.Shape
	more         int // end of its further fields in batch.more
	flags        uint32
}

// Encoded sizes of the fields of a record, with their tags.
const (
	sizeTrace = 2 + 16
	sizeID    = 2 + 8
	sizeTime  = 1 + 8
	sizeFlags = 2 + 4
)

// size returns the encoded size of the fields of a record without its shape and further fields.
func (r *record) size() int {
	n := sizeTrace + sizeID + 2*sizeTime + sizeFlags
	if r.parent.IsValid() {
		n += sizeID
	}
	return n
}

// encode appends the fields of a record without its shape and further fields.
func (r *record) encode(b []byte) []byte {
	b = appendBytes(b, 1, r.trace[:])
	b = appendBytes(b, 2, r.id[:])
	if r.parent.IsValid() {
		b = appendBytes(b, 4, r.parent[:])
	}
	b = appendFixed(b, 7, r.began)
	b = appendFixed(b, 8, r.ended)
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), r.flags)
}

// add adds a span with further encoded fields and returns its encoded size.
func (b *batch) add(r record, more []byte) int {
	b.more = append(b.more, more...)
	r.more = len(b.more)
	b.spans = append(b.spans, r)
	size := 1 + protowire.SizeBytes(r.size()+len(more)+len(r.shape.Encoded(encodeShape)))
	b.bytes += size
	return size
}

// envelope is the encoding that surrounds the spans of a request.
type envelope struct{ before, scope []byte }

func newEnvelope(about *resource.Resource, scope string) envelope {
	resource := appendMessage(nil, 1, func(b []byte) []byte { return appendAttributes(b, 1, about.Attributes()) })
	return envelope{
		before: appendString(resource, 3, about.SchemaURL()),
		scope:  appendMessage(nil, 1, func(b []byte) []byte { return appendString(b, 1, scope) }),
	}
}

// traces is a message trace/v1.TracesData.
type traces struct {
	head []byte // what precedes the spans
	batch
}

func newTraces(e envelope, b batch) traces {
	own := len(e.scope) + b.bytes
	head := protowire.AppendTag(nil, 1, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(e.before)+1+protowire.SizeBytes(own)))
	head = append(head, e.before...)
	head = protowire.AppendVarint(protowire.AppendTag(head, 2, protowire.BytesType), uint64(own))
	return traces{append(head, e.scope...), b}
}

func (t traces) size() int { return len(t.head) + t.bytes }

func (t traces) reader() io.Reader { return &tracesReader{rest: t.head, batch: t.batch} }

// tracesReader reads traces.
type tracesReader struct {
	rest []byte    // what is read next
	then [2][]byte // what is read after it
	batch
	next int    // index of a span in batch.spans
	at   int    // begin of its further fields in batch.more
	room []byte // memory of rest
}

// Read implements io.Reader.
func (r *tracesReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 && !r.advance() {
			return n, io.EOF
		}
		copied := copy(p[n:], r.rest)
		n, r.rest = n+copied, r.rest[copied:]
	}
	return n, nil
}

// advance sets rest to the next part that is not empty.
func (r *tracesReader) advance() bool {
	for i := range r.then {
		if r.rest, r.then[i] = r.then[i], nil; len(r.rest) > 0 {
			return true
		}
	}
	if r.next == len(r.spans) {
		return false
	}
	s := &r.spans[r.next]
	more, shape := r.more[r.at:s.more], s.shape.Encoded(encodeShape)
	r.room = protowire.AppendTag(r.room[:0], 2, protowire.BytesType)
	r.room = s.encode(protowire.AppendVarint(r.room, uint64(s.size()+len(more)+len(shape))))
	r.rest, r.then = r.room, [...][]byte{more, shape}
	r.next, r.at = r.next+1, s.more
	return true
}
