package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// Limits of a response on the wire, in bytes.
const (
	maxEvent = 1 << 20  // of the data of one event, and of a line
	maxBody  = 32 << 20 // of one response
	maxText  = 2 << 20  // of the text and the calls of one response
	headSize = 64       // of the beginning that tells what the response is
)

// doneMark ends a stream of chat completions.
const doneMark = "[DONE]"

// errIdle is the cause if a silent stream is abandoned.
var errIdle = errors.New("the stream fell silent")

// protocol encodes one request of an API and reads its response into an answer.
type protocol interface {
	request(cfg Config, req Request, d dialect) object
	// event reads the data of one event of a stream and reports whether it is the last one.
	event(data []byte) (last bool, err error)
	// document reads a response that is not streamed.
	document(data []byte) error
	// finish distinguishes a complete response from an incomplete one.
	finish() error
}

// read reads a response to its end. Its errors are an *Error or one of the network.
func read(resp *http.Response, body io.Reader, p protocol, a *answer) error {
	r := bufio.NewReaderSize(body, headSize)
	kind, err := contentKind(resp, r)
	if err != nil {
		return err
	}
	switch kind {
	case "json":
		err = readDocument(r, p, a)
	case "stream":
		err = readEvents(r, p, a)
	default:
		err = failure(Invalid, "the endpoint answered with %s instead of a completion; check base_url", kind)
	}
	if err != nil {
		return err
	}
	return p.finish()
}

func readDocument(r io.Reader, p protocol, a *answer) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return err
	}
	if len(raw) > maxText {
		return tooLarge(maxText)
	}
	if o, ok := readErrorObject(raw); ok {
		return o.err(0)
	}
	a.ended = true
	return p.document(trimJSON(raw))
}

func readEvents(r io.Reader, p protocol, a *answer) error {
	events := sse.NewReader(r, maxEvent)
	defer events.Free()
	events.Whole, events.ErrorField = wholeLine, true
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, sse.ErrTooLong):
			return failure(Invalid, "an event of the stream is larger than %d bytes", maxEvent)
		case err != nil:
			return err
		}
		data := trimJSON(ev.Data)
		switch {
		case ev.Data == nil:
			continue
		case string(data) == doneMark:
			a.ended = true
			return nil
		case ev.Name == "error", bytes.Contains(data, []byte(`"error"`)):
			if err := eventError(ev.Name, data); err != nil {
				return err
			}
		}
		last, err := p.event(data)
		if known := (*Error)(nil); err != nil && !errors.As(err, &known) {
			err = failure(Invalid, "the stream has an event of an unexpected form: %v", err)
		}
		if last || err != nil {
			return err
		}
	}
}

// eventType returns the member "type" of an event.
func eventType(data []byte) (string, error) {
	var event struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(data, &event)
	return event.Type, err
}

// wholeLine reports whether a last line without a line break is complete.
func wholeLine(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	return ok && (string(data) == doneMark || json.Valid(data))
}

// contentKind distinguishes a stream from a single JSON document by the declared type and the first byte.
func contentKind(resp *http.Response, r *bufio.Reader) (string, error) {
	declared, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	first, err := firstByte(r)
	switch {
	case errors.Is(err, io.EOF):
		return "nothing", nil
	case err != nil:
		return "", err
	case declared == "text/html" || first == '<':
		return "HTML", nil
	case first == '{' || first == '[':
		return "json", nil
	case declared == "text/event-stream", first == ':':
		return "stream", nil
	}
	head, _ := r.Peek(len("event:"))
	if bytes.HasPrefix(head, []byte("data:")) || bytes.HasPrefix(head, []byte("event:")) {
		return "stream", nil
	}
	return cmp.Or(declared, "content without a type"), nil
}

// firstByte peeks at the first byte that is not a space.
func firstByte(r *bufio.Reader) (byte, error) {
	for n := 1; n <= headSize; n++ {
		head, err := r.Peek(n)
		if text := trimJSON(head); len(text) > 0 && text[0] != 0xEF {
			return text[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// statusError reads an error response.
func statusError(resp *http.Response) *Error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxWords))
	o, ok := readErrorObject(raw)
	if !ok && !strings.HasPrefix(string(trimJSON(raw)), "<") {
		o.Message = string(raw)
	}
	o.Message = cmp.Or(o.Message, http.StatusText(resp.StatusCode))
	e := o.err(resp.StatusCode)
	if resp.StatusCode < 400 {
		e.Message = "the endpoint redirects; set base_url to its real address"
	}
	e.retryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// eventError returns the error that an event reports, nil if it reports none.
func eventError(name string, data []byte) error {
	if o, ok := readErrorObject(data); ok {
		o.Message = cmp.Or(o.Message, "the endpoint reported an error in the stream")
		return o.err(0)
	}
	if name == "error" {
		return errorObject{Message: string(data)}.err(0)
	}
	return nil
}

func trimJSON(data []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
}

func head(data []byte) string { return string(data[:min(len(data), maxWords)]) }

func tooLarge(limit int) *Error { return failure(Invalid, "the answer is larger than %d bytes", limit) }

// boundedBody limits the size of a response body and, once the answer has begun, the time without data.
type boundedBody struct {
	body   io.Reader
	answer *answer
	idle   time.Duration
	cancel context.CancelCauseFunc
	read   int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.answer.started {
		alarm := time.AfterFunc(b.idle, func() { b.cancel(errIdle) })
		defer alarm.Stop()
	}
	n, err := b.body.Read(p)
	if b.read += n; b.read > maxBody {
		return 0, tooLarge(maxBody)
	}
	return n, err
}

// networkError returns err as an *Error without the URL, which may hold secrets. The kind is for errors without a
// better one.
func networkError(ctx context.Context, err error, kind Kind) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errIdle) || errors.Is(cause, errSlow) {
			return failure(Timeout, "%v", cause)
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
