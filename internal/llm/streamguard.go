package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// Limits of a response on the wire, in bytes.
const (
	maxEvent = 1 << 20  // of the data of one event, and of a line
	maxBody  = 32 << 20 // of one response
	maxText  = 2 << 20  // of the text of one response
	headSize = 64       // of the beginning that tells what the response is
)

// doneMark ends a stream of chat completions.
const doneMark = "[DONE]"

// streamGuard is the HTTP client of go-openai or of Anthropic's SDK for one request. Their stream readers do not
// distinguish a cut stream from a complete one, read HTML as an empty response, and have no limits. The guard
// converts every valid response into a stream of the simplest form, one data line of compact JSON per event, and
// every other response into an *Error.
type streamGuard struct {
	endpoint
	named   bool                                  // events are named by a member of their data
	edit    func(body map[string]json.RawMessage) // changes the request body
	extra   []map[string]json.RawMessage          // merged into the request body, in this order
	whole   func(body []byte) ([]byte, error)     // converts a response without streaming into the data of one event
	keep    func(data []byte) bool                // reports which events matter; nil = all
	cancel  context.CancelCauseFunc
	idle    time.Duration // longest silence once the response has begun
	started bool          // the response has begun
	done    bool          // the stream ended properly
}

// errIdle is the cause if a silent stream is abandoned.
var errIdle = errors.New("the stream fell silent")

// Do implements openai.HTTPDoer.
func (g *streamGuard) Do(req *http.Request) (*http.Response, error) {
	if err := g.rewrite(req); err != nil {
		return nil, err
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return nil, networkError(req.Context(), err, Unreachable)
	}
	body := &boundedBody{body: resp.Body, guard: g, explain: func(err error) error {
		return networkError(req.Context(), err, Cut)
	}}
	stream, err := g.open(resp, body)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	resp.Body = stream
	return resp, nil
}

// rewrite adds parameters that the library does not support, and removes headers that describe this machine.
func (g *streamGuard) rewrite(req *http.Request) error {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	var body map[string]json.RawMessage // nested values keep their order, which matters for schemas
	if err := json.Unmarshal(raw, &body); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	g.edit(body)
	for _, more := range g.extra {
		merge(body, more)
	}
	if raw, err = json.Marshal(body); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	req.ContentLength = int64(len(raw))
	req.Body = io.NopCloser(bytes.NewReader(raw))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	g.endpoint.prepare(req)
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Del("Connection")
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "X-Stainless-") })
	return nil
}

// open checks a response and returns it as a stream in the plain form.
func (g *streamGuard) open(resp *http.Response, body io.ReadCloser) (io.ReadCloser, error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, statusError(resp, body)
	}
	r := bufio.NewReaderSize(body, headSize)
	switch kind := contentKind(resp, r); kind {
	case "stream":
		events := sse.NewReader(r, maxEvent)
		events.Whole, events.ErrorField = wholeLine, true
		return &plainStream{guard: g, events: events, body: body}, nil
	case "json":
		raw, err := io.ReadAll(io.LimitReader(r, maxText+1))
		if err != nil {
			return nil, err
		}
		if len(raw) > maxText {
			return nil, failure(Invalid, "the answer is larger than %d bytes", maxText)
		}
		if c, ok := readComplaint(raw); ok {
			return nil, c.err(0)
		}
		data, err := g.whole(trimJSON(raw))
		if err != nil {
			return nil, err
		}
		g.done = true
		return &plainStream{guard: g, buf: g.frame(data), body: body}, nil
	default:
		return nil, failure(Invalid, "the endpoint answered with %s instead of a completion; check base_url", kind)
	}
}

// wholeLine reports whether a last line without a line break is complete.
func wholeLine(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	return ok && (string(data) == doneMark || json.Valid(data))
}

// contentKind distinguishes a stream from a single JSON document by the declared type and the first byte.
func contentKind(resp *http.Response, r *bufio.Reader) string {
	declared, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	first := firstByte(r)
	switch {
	case first == 0:
		return "nothing"
	case declared == "text/html" || first == '<':
		return "HTML"
	case first == '{' || first == '[':
		return "json"
	case declared == "text/event-stream", first == ':':
		return "stream"
	}
	head, _ := r.Peek(len("event:"))
	if bytes.HasPrefix(head, []byte("data:")) || bytes.HasPrefix(head, []byte("event:")) {
		return "stream"
	}
	if declared == "" {
		return "content without a type"
	}
	return declared
}

// firstByte peeks at the first byte that is not a space. It is 0 if there is none.
func firstByte(r *bufio.Reader) byte {
	for n := 1; n <= headSize; n++ {
		head, err := r.Peek(n)
		if text := trimJSON(head); len(text) > 0 && text[0] != 0xEF {
			return text[0]
		}
		if err != nil {
			return 0
		}
	}
	return 0
}

// statusError reads an error response.
func statusError(resp *http.Response, body io.Reader) *Error {
	raw, _ := io.ReadAll(io.LimitReader(body, maxWords))
	c, ok := readComplaint(raw)
	if !ok && !strings.HasPrefix(string(trimJSON(raw)), "<") {
		c.Message = string(raw)
	}
	c.Message = cmp.Or(c.Message, http.StatusText(resp.StatusCode))
	e := c.err(resp.StatusCode)
	if resp.StatusCode < 400 {
		e.Message = "the endpoint redirects; set base_url to its real address"
	}
	e.retryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// plainStream is the stream that the library reads.
type plainStream struct {
	guard  *streamGuard
	events *sse.Reader // nil at the end of the stream
	buf    []byte
	body   io.Closer
}

// Read implements io.Reader.
func (s *plainStream) Read(p []byte) (int, error) {
	for len(s.buf) == 0 {
		if s.events == nil || s.guard.done {
			return 0, io.EOF
		}
		ev, err := s.events.Next()
		if errors.Is(err, sse.ErrTooLong) {
			return 0, failure(Invalid, "an event of the stream is larger than %d bytes", maxEvent)
		}
		if err != nil {
			return 0, err
		}
		if ev.Data == nil {
			continue
		}
		if string(bytes.TrimSpace(ev.Data)) == doneMark {
			s.guard.done = true
			continue
		}
		data := trimJSON(ev.Data)
		if ev.Name == "error" || bytes.Contains(data, []byte(`"error"`)) {
			if err := frameError(ev.Name, data); err != nil {
				return 0, err
			}
		}
		if !json.Valid(data) {
			return 0, failure(Invalid, "the stream has an event that is not JSON: %s", head(data))
		}
		if s.guard.keep == nil || s.guard.keep(data) {
			s.buf = s.guard.frame(data)
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *plainStream) Close() error { return s.body.Close() }

// frameError returns the error that an event reports, nil if it reports none.
func frameError(name string, data []byte) error {
	if c, ok := readComplaint(data); ok {
		c.Message = cmp.Or(c.Message, "the endpoint reported an error in the stream")
		return c.err(0)
	}
	if name == "error" {
		return complaint{Message: string(data)}.err(0)
	}
	return nil
}

func trimJSON(data []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
}

// frame writes valid JSON as one event. It drops a leading "error":null, which go-openai takes for an error.
func (g *streamGuard) frame(data []byte) []byte {
	var compact bytes.Buffer
	_ = json.Compact(&compact, data) // cannot fail on valid JSON
	rest, cut := bytes.CutPrefix(compact.Bytes(), []byte(`{"error":null,`))
	var out []byte
	if g.named {
		var event struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(data, &event) // without a name the event is ignored
		out = append(out, "event: "+short.Line(event.Type, headSize)+"\n"...)
	}
	out = append(out, "data: "...)
	if cut {
		out = append(out, '{')
	}
	return append(append(out, rest...), "\n\n"...)
}

func head(data []byte) string {
	return string(data[:min(len(data), maxWords)])
}

// boundedBody limits the size of a response body and, once the response has begun, the time without data.
type boundedBody struct {
	body    io.ReadCloser
	guard   *streamGuard
	explain func(error) error // names a failure of the network
	read    int
	once    sync.Once
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.guard.started {
		alarm := time.AfterFunc(b.guard.idle, func() { b.guard.cancel(errIdle) })
		defer alarm.Stop()
	}
	n, err := b.body.Read(p)
	b.read += n
	if b.read > maxBody {
		return 0, failure(Invalid, "the answer is larger than %d bytes", maxBody)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.explain(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() (err error) {
	b.once.Do(func() { err = b.body.Close() })
	return err
}

// networkError returns err as an *Error without the URL, which may hold secrets. The kind is for errors without a
// better one.
func networkError(ctx context.Context, err error, kind Kind) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if cause := context.Cause(ctx); cause != nil {
		switch {
		case errors.Is(cause, errIdle):
			return failure(Timeout, "%v", errIdle)
		case errors.Is(cause, errSlow):
			return failure(Timeout, "%v", errSlow)
		}
		return cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	text := err.Error()
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		kind = Timeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = "the connection was closed before the answer was complete"
	}
	e := failure(kind, "%s", text)
	e.unconnected = unconnected(err)
	return e
}
