package edge

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/limit"
)

const (
	bodyTimeout = time.Minute      // for a client to send its body
	bodyPause   = 10 * time.Second // between two parts of it
	firstBuffer = 64 << 10         // bytes allocated for a body before any of it has come
)

var (
	errTooLarge = errors.New("the body is too large")
	errShort    = errors.New("there is no memory for the body")
)

// readBody reads the whole body, or answers why it cannot.
func (e *Edge) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if !isJSON(r.Header) {
		e.writeError(w, http.StatusUnsupportedMediaType, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "Content-Type must be application/json"})
		return nil, false
	}
	u := upload{body: r.Body, conn: http.NewResponseController(w), memory: e.memory, end: time.Now().Add(bodyTimeout)}
	b, err := u.read(r.ContentLength, int64(e.limits.BodyBytes))
	u.memory.Release(u.held) // it is counted by who goes on with it
	if err == nil {
		_ = u.conn.SetReadDeadline(time.Time{}) // else it stays, for net/http reads on before it answers
	}
	switch {
	case errors.Is(err, errTooLarge):
		if r.Header.Get("Expect") == "" { // else it is not being sent yet
			u.drain(2 * int64(e.limits.BodyBytes))
		}
		w.Header().Set("Connection", "close")
		e.writeError(w, http.StatusRequestEntityTooLarge, "", &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidRequest,
			Message: "The message is larger than " + e.limits.BodyBytes.String(),
		})
	case errors.Is(err, errShort):
		w.Header().Set("Connection", "close")
		e.tooBusy(w, "", e.noRoom(false))
	case err != nil:
		w.Header().Set("Connection", "close")
		e.writeError(w, http.StatusBadRequest, "", &jsonrpc.Error{
			Code: jsonrpc.CodeParse, Message: "Parse error: the body could not be read to its end"})
	}
	return b, err == nil
}

// upload is a body on its way in. Who sends it has to go on sending, and what has come counts as held.
type upload struct {
	body   io.Reader
	conn   *http.ResponseController
	memory *limit.Memory
	end    time.Time // when all of it must be here
	extend time.Time // when the deadline of the connection is set anew
	held   int       // bytes
}

// read reads all of it. length is the announced size or -1.
func (u *upload) read(length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, errTooLarge
	}
	if u.memory.Short() {
		return nil, errShort
	}
	most := length + 1 // one more than will come, to see the end
	if length < 0 {
		length, most = 511, limit+1
	}
	b := make([]byte, 0, min(length+1, firstBuffer))
	for {
		n, err := u.part(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			if u.memory.Short() {
				return nil, errShort
			}
			b = append(make([]byte, 0, min(2*int64(cap(b)), most)), b...)
		}
	}
}

// drain reads on, so many bytes at most, and keeps nothing: a client that is still sending when its
// connection closes does not get to read why.
func (u *upload) drain(limit int64) {
	var scrap [32 << 10]byte
	for limit > 0 {
		n, err := u.next(scrap[:])
		if limit -= int64(n); err != nil {
			return
		}
	}
}

// part reads what comes next and counts it as held.
func (u *upload) part(b []byte) (int, error) {
	n, err := u.next(b)
	u.held += n
	u.memory.Hold(n)
	return n, err
}

// next reads what comes next, within a time.
func (u *upload) next(b []byte) (int, error) {
	if now := time.Now(); now.After(u.extend) { // most bodies come in one piece
		u.extend = now.Add(bodyPause / 4)
		deadline := now.Add(bodyPause)
		if deadline.After(u.end) {
			deadline = u.end
		}
		_ = u.conn.SetReadDeadline(deadline) // not all that serve tests have one
	}
	return u.body.Read(b)
}

// isJSON reports whether the Content-Type is that of JSON, or missing.
func isJSON(h http.Header) bool {
	sent := h["Content-Type"]
	if len(sent) == 0 || sent[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(sent[0])
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
