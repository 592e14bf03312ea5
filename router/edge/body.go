package edge

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	bodyTimeout = time.Minute      // for a client to send its body
	bodyPause   = 10 * time.Second // between two parts of it
	firstBuffer = 4 << 10          // bytes allocated for a body before any of it has come; larger bodies are charged
)

var (
	errTooLarge = errors.New("the body is too large")
	errShort    = errors.New("there is no memory for the body")
)

// readBody reads the whole body, or answers why it cannot. It is charged to caller while it comes in.
func (e *Edge) readBody(w http.ResponseWriter, r *http.Request, caller auth.Caller) ([]byte, bool) {
	if !isJSON(r.Header) {
		e.writeError(w, http.StatusUnsupportedMediaType, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "Content-Type must be application/json"})
		return nil, false
	}
	u := upload{body: r.Body, conn: http.NewResponseController(w), budget: e.budget, caller: caller.ID, end: time.Now().Add(bodyTimeout)}
	b, err := u.read(r.ContentLength, int64(e.limits.BodyBytes))
	if u.held > 0 {
		u.budget.Release(u.caller, u.held) // it is charged by who goes on with it
	}
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

// upload is a body on its way in. Who sends it has to go on sending.
type upload struct {
	body   io.Reader
	conn   *http.ResponseController
	budget *limit.Budget
	caller string
	end    time.Time // when all of it must be here
	extend time.Time // when the deadline of the connection is set anew
	held   int       // bytes charged
}

// read reads all of it. length is the announced size or -1.
func (u *upload) read(length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, errTooLarge
	}
	if u.budget.Short() {
		return nil, errShort
	}
	most := length + 1 // one more than will come, to see the end
	if length < 0 {
		length, most = 511, limit+1
	}
	b := make([]byte, 0, min(length+1, firstBuffer))
	for {
		n, err := u.next(b[len(b):cap(b)])
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
			room := int(min(max(2*int64(cap(b)), 16*firstBuffer), most))
			if u.budget.Short() || !u.budget.Reserve(u.caller, room-u.held) {
				return nil, errShort
			}
			u.held = room
			b = append(make([]byte, 0, room), b...)
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
