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
	bodyTimeout = time.Minute      // for the whole body
	bodyPause   = 10 * time.Second // for each part of it
	firstBuffer = 4 << 10          // bytes allocated before any have arrived; only larger buffers are charged
	trustedPart = 64 << 10         // bytes of a body after which its announced length is allocated
)

// Errors of ReadBody. Any other error means that the body was cut off.
var (
	ErrContentType = errors.New("the Content-Type is not application/json")
	ErrTooLarge    = errors.New("the body is too large")
	ErrOverloaded  = errors.New("there is no memory for the body")
)

// ReadBody reads the whole body of a request, at most limit bytes. The client has a minute for it and 10 seconds for
// each part. What is read is charged to caller until ReadBody returns.
func ReadBody(
	w http.ResponseWriter, r *http.Request, budget *limit.Budget, caller string, limit int64,
) ([]byte, error) {
	if !isJSON(r.Header) {
		return nil, ErrContentType
	}
	u := upload{
		body:   r.Body,
		conn:   http.NewResponseController(w),
		budget: budget,
		caller: caller,
		end:    time.Now().Add(bodyTimeout),
	}
	b, err := u.read(r.ContentLength, limit)
	if u.held > 0 {
		budget.Release(caller, u.held) // what is made of the body is charged again
	}
	switch {
	case err == nil:
		_ = u.conn.SetReadDeadline(time.Time{}) // after a failure it stays: net/http goes on reading
	case errors.Is(err, ErrTooLarge) && r.Header.Get("Expect") == "": // else the client has not begun to send
		u.drain(2 * limit)
	}
	return b, err
}

// upload is a body that is being read.
type upload struct {
	body   io.Reader
	conn   *http.ResponseController
	budget *limit.Budget
	caller string
	end    time.Time // deadline for the whole body
	extend time.Time // when to move the deadline of the connection
	held   int       // bytes charged
}

// read reads all of it. length is the announced size or -1.
func (u *upload) read(length, limit int64) ([]byte, error) {
	switch {
	case length > limit:
		return nil, ErrTooLarge
	case u.budget.Short():
		return nil, ErrOverloaded
	}
	announced, most := int64(0), limit+1 // one byte more, to see the end
	if length >= 0 {
		announced, most = length+1, length+1
	}
	b := make([]byte, 0, min(most, firstBuffer))
	for {
		n, err := u.next(b[len(b):cap(b)])
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
		// An announced body without room is refused before more of it is read.
		charged := int(min(size, limit))
		if u.budget.Short() || !u.budget.Fits(u.caller, int(min(announced, limit))-u.held) ||
			!u.budget.Reserve(u.caller, charged-u.held) {
			return nil, ErrOverloaded
		}
		u.held = charged
		b = append(make([]byte, 0, min(size, most)), b...)
	}
}

// drain reads and discards up to limit bytes: a client that is still sending when its connection closes cannot read the
// error.
func (u *upload) drain(limit int64) {
	var scrap [32 << 10]byte
	for limit > 0 {
		n, err := u.next(scrap[:])
		if limit -= int64(n); err != nil {
			return
		}
	}
}

// next reads the next part within the deadlines.
func (u *upload) next(b []byte) (int, error) {
	if now := time.Now(); now.After(u.extend) { // at most every bodyPause/4: most bodies come in one part
		u.extend = now.Add(bodyPause / 4)
		deadline := now.Add(bodyPause)
		if deadline.After(u.end) {
			deadline = u.end
		}
		_ = u.conn.SetReadDeadline(deadline) // connections of tests may have no deadlines
	}
	return u.body.Read(b)
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
