package llm

import "encoding/json"

// errorJSON is the JSON form of an Error for recordings, with all properties that callers can observe.
type errorJSON struct {
	Kind    Kind   `json:"kind"`
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Refusal bool   `json:"refusal,omitempty"`
	Model   string `json:"model,omitempty"`
	Code    string `json:"code,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(errorJSON{e.Kind, e.Status, e.Message, e.Refusal, e.model, e.code})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Error) UnmarshalJSON(raw []byte) error {
	var j errorJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*e = Error{Kind: j.Kind, Status: j.Status, Message: j.Message, Refusal: j.Refusal, model: j.Model, code: j.Code}
	e.retryAfter = -1
	return nil
}
