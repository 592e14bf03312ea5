package otlp

import (
	"io"

	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// batch is a sequence of encoded spans. What they share with others, their shape, is inserted when they are sent, so
// that a waiting span takes a third of its bytes.
type batch struct {
	own   []byte // of each span: field number, length, and its own fields
	ends  []end
	bytes int // size of the spans with their shapes
}

// end is the end of a span in batch.own, and the rest of the span.
type end struct {
	at    int
	shape *tracing.Shape // nil = none
}

// add adds a span and returns its size.
func (b *batch) add(fields []byte, shape *tracing.Shape) int {
	begin, rest := len(b.own), len(shape.Encoded(encodeShape))
	b.own = protowire.AppendTag(b.own, 2, protowire.BytesType)
	b.own = append(protowire.AppendVarint(b.own, uint64(len(fields)+rest)), fields...)
	b.ends = append(b.ends, end{len(b.own), shape})
	size := len(b.own) - begin + rest
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
	rest, then []byte // what is read next, and after it
	batch
	spans, at int // read so far: spans, and bytes of batch.own
}

// Read implements io.Reader.
func (r *tracesReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 && !r.next() {
			return n, io.EOF
		}
		copied := copy(p[n:], r.rest)
		n, r.rest = n+copied, r.rest[copied:]
	}
	return n, nil
}

// next sets rest to the next part that is not empty.
func (r *tracesReader) next() bool {
	if r.rest, r.then = r.then, nil; len(r.rest) > 0 {
		return true
	}
	if r.spans == len(r.ends) {
		return false
	}
	span := r.ends[r.spans]
	r.rest, r.then = r.own[r.at:span.at], span.shape.Encoded(encodeShape)
	r.spans, r.at = r.spans+1, span.at
	return true
}
