package plan

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Shown returns the parts of an outcome that users see: its value, or for a failure the text "Error: …", and the
// failure. Both are cut to limit bytes each, like Cut does; cut reports whether anything is missing. A limit of 0
// leaves them whole.
func (o Outcome) Shown(limit int) (value json.RawMessage, failure *Error, cut bool) {
	value, failure = o.Value, o.Err
	if failure != nil {
		value = appendQuoted(nil, "Error: "+failure.Message)
	}
	if limit == 0 {
		return value, failure, false
	}
	value, cut = Cut(value, limit)
	if failure != nil && len(failure.Message) > limit {
		failure = &Error{Reason: failure.Reason, Message: short.Text(failure.Message, limit)}
		cut = true
	}
	return value, failure, cut
}
