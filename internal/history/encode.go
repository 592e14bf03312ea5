package history

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// encode writes the JSON of a record. A detail that cannot be encoded is left out.
func (r *record) encode() {
	e := &r.entry
	if e.Kind == KindCall && len(e.Uses) == 1 && e.Text == "" && e.Error == "" && e.TraceID == "" && e.Models == nil {
		r.summary = e.appendCall(make([]byte, 0, 256))
	} else {
		r.summary, _ = json.Marshal(e) // texts, numbers and times
	}
	if r.detail != nil {
		if whole, err := json.Marshal(r.detail); err == nil {
			r.whole = whole
		}
	}
}

// appendCall appends the JSON of a call. Calls come by the thousand, and reflection would take most of their time.
func (e *Entry) appendCall(b []byte) []byte {
	text := func(name, value string) {
		b = append(b, name...)
		b, _ = jsontext.AppendQuote(b, value) // invalid UTF-8 is replaced
	}
	number := func(name string, value int) { b = strconv.AppendInt(append(b, name...), int64(value), 10) }
	u := &e.Uses[0]
	b = strconv.AppendUint(append(b, `{"id":`...), e.ID, 10)
	b = append(e.At.AppendFormat(append(b, `,"kind":"call","at":"`...), time.RFC3339Nano), '"')
	text(`,"caller":`, e.Caller)
	text(`,"outcome":`, e.Outcome)
	b = strconv.AppendFloat(append(b, `,"duration_ms":`...), e.Duration, 'f', -1, 64)
	number(`,"bytes":`, e.Bytes)
	number(`,"attempts":`, e.Attempts)
	text(`,"uses":[{"server":`, u.Server)
	text(`,"tool":`, u.Tool)
	number(`,"calls":`, u.Calls)
	number(`,"failed":`, u.Failed)
	b = strconv.AppendFloat(append(b, `,"ms":`...), u.Time, 'f', -1, 64)
	return append(b, "}]}"...)
}
