package edge

import (
	"errors"
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// takeBody reads the whole body, or answers why it cannot.
func (e *Edge) takeBody(w http.ResponseWriter, r *http.Request, caller auth.Caller) ([]byte, bool) {
	b, err := inbound.ReadBody(w, r, e.budget, caller.ID, int64(e.limits.BodyBytes))
	if err == nil {
		return b, true
	}
	if errors.Is(err, inbound.ErrContentType) {
		e.writeError(w, http.StatusUnsupportedMediaType, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "Content-Type must be application/json"})
		return nil, false
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, inbound.ErrTooLarge):
		e.writeError(w, http.StatusRequestEntityTooLarge, "", &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidRequest,
			Message: "The message is larger than " + e.limits.BodyBytes.String(),
		})
	case errors.Is(err, inbound.ErrOverloaded):
		e.tooBusy(w, "", e.noRoom(false))
	default:
		e.writeError(w, http.StatusBadRequest, "", &jsonrpc.Error{
			Code: jsonrpc.CodeParse, Message: "Parse error: the body could not be read to its end"})
	}
	return nil, false
}
