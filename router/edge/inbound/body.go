package inbound

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	bodyTimeout = time.Minute
	firstBuffer = 4 << 10  // bytes allocated before any have arrived; only larger buffers are charged
	trustedPart = 64 << 10 // bytes of a body after which its announced length is allocated
)

// Errors of ReadBody. Any other error means that the body was cut off.
var (
	ErrContentType = errors.New("the Content-Type is not application/json")
	ErrTooLarge    = errors.New("the body is too large")
	ErrOverloaded  = errors.New("there is no memory for the body")
)

// ReadBody reads the whole body of a request, at most limit bytes, within a minute. What is read is charged to caller
// until ReadBody returns.
func ReadBody(
	w http.ResponseWriter, r *http.Request, budget *limit.Budget, caller string, limit int64,
) ([]byte, error) {
	if !isJSON(r.Header) {
		return nil, ErrContentType
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout)) // connections of tests may have no deadlines
	if r.ContentLength <= limit && budget.Short() {       // a body that is too large is told so
		return nil, ErrOverloaded
	}
	held := 0
	b, err := readAll(r, limit, func(announced, size int) bool {
		// An announced body without room is refused before more of it is read.
		if budget.Short() || !budget.Fits(caller, announced-held) || !budget.Reserve(caller, size-held) {
			return false
		}
		held = size
		return true
	})
	if held > 0 {
		budget.Release(caller, held) // what is made of the body is charged again
	}
	switch {
	case err == nil:
		_ = conn.SetReadDeadline(time.Time{}) // after a failure it stays: net/http goes on reading
	case errors.Is(err, ErrTooLarge) && r.Header.Get("Expect") == "": // else the client has not begun to send
		// A client that is still sending when its connection closes cannot read the error.
		_, _ = io.CopyN(io.Discard, r.Body, 2*limit)
	}
	return b, err
}

// readAll reads the body of r. reserve takes the announced size of the body and that of the next buffer.
func readAll(r *http.Request, limit int64, reserve func(announced, size int) bool) ([]byte, error) {
	length := r.ContentLength
	if length > limit {
		return nil, ErrTooLarge
	}
	announced, most := int64(0), limit+1 // one byte more, to see the end
	if length >= 0 {
		announced, most = length+1, length+1
	}
	b := make([]byte, 0, min(most, firstBuffer))
	for {
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		case len(b) < cap(b):
			continue
		}
		size := max(2*int64(cap(b)), trustedPart)
		if cap(b) >= trustedPart {
			size = max(size, announced) // to copy a large body again and again costs more than one that stalls
		}
		if !reserve(int(min(announced, limit)), int(min(size, limit))) {
			return nil, ErrOverloaded
		}
		b = append(make([]byte, 0, min(size, most)), b...)
	}
}

// isJSON reports whether the Content-Type is JSON or missing.
func isJSON(h http.Header) bool {
	sent := h["Content-Type"]
	if len(sent) == 0 || sent[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(sent[0])
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
