package tape

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// clean removes from JSON the secrets of the configuration and values that look like credentials. It writes JSON in a
// canonical form.
func (t *Tape) clean(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return nil, err
	}
	return redact.JSON(raw, t.secrets.Text)
}
