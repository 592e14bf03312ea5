package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Kind is the kind of a failure.
type Kind string

// The kinds of failure. The first five may be temporary and are retried.
const (
	RateLimited Kind = "rate_limited" // 429
	Server      Kind = "server"       // 5xx, or an error in the middle of a stream
	Timeout     Kind = "timeout"      // no response, or no further piece of it, in time
	Unreachable Kind = "unreachable"  // no connection, or no response
	Cut         Kind = "cut"          // the stream ended before the response was complete
	Truncated   Kind = "truncated"    // the response reached the length limit of the model
	Refused     Kind = "refused"      // the endpoint or the model refused
	Invalid     Kind = "invalid"      // the response is not a model's response
	Empty       Kind = "empty"        // the response is complete and has no content
)

// Error is the reason why there is no response. Its text is one line and never contains the API key.
type Error struct {
	Kind    Kind   `json:"kind"`
	Status  int    `json:"status,omitempty"`  // HTTP status, 0 if there was none
	Message string `json:"message,omitempty"` // one line
	Refusal bool   `json:"refusal,omitempty"` // the model itself refuses; Message is its text
	Model   string `json:"model,omitempty"`
	Code    string `json:"code,omitempty"` // the endpoint's own code, such as insufficient_quota

	param       string        // the parameter that the endpoint refuses
	retryAfter  time.Duration // how long the endpoint asks to wait; negative = not given
	unconnected bool          // no connection was made
}

// Error implements error.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Model != "" {
		text = "model " + e.Model + ": " + text
	}
	if e.Status != 0 {
		text += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited:
		return e.Code != "insufficient_quota"
	case Server, Timeout, Unreachable, Cut:
		return true
	}
	return false
}

// Declined reports whether the model, or a content filter of its endpoint, refuses the request. Callers must not
// circumvent that.
func (e *Error) Declined() bool {
	return e.Kind == Refused && (e.Status == 0 || strings.Contains(e.Code, "content_policy") || e.Code == "content_filter")
}

func failure(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), retryAfter: -1}
}

// refusal returns the error for a model that refuses.
func refusal(words string) *Error {
	e := failure(Refused, "%s", words)
	e.Refusal = true
	return e
}

// Limits of an endpoint's error message in bytes: as received, and in an Error.
const (
	maxWords   = 64 << 10
	maxMessage = 300
)

// finish makes an error printable. It removes secrets before it cuts the message, so that no part of a secret
// remains.
func (e *Error) finish(model string, secrets []string) {
	e.Model = model
	e.Message = texts.Line(redact.NewMasker(secrets).Text(e.Message), maxMessage)
}

// errorObject is an endpoint's error object.
type errorObject struct {
	Message string
	Code    string
	Type    string
	Param   string
}

// readErrorObject finds the error in a JSON body or frame: {"error":{…}}, {"error":"…"}, [{"error":{…}}],
// {"message":…} of older vLLM, {"detail":…}, or {"type":"error",…} of the Responses API. It reports false if there is
// none.
func readErrorObject(data []byte) (errorObject, bool) {
	data = trimJSON(data)
	if len(data) > 0 && data[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil || len(list) == 0 {
			return errorObject{}, false
		}
		return readErrorObject(list[0])
	}
	var outer, inner map[string]json.RawMessage
	if json.Unmarshal(data, &outer) != nil {
		return errorObject{}, false
	}
	switch reported := outer["error"]; {
	case len(reported) > 0 && string(reported) != "null":
		if json.Unmarshal(reported, &inner) != nil {
			return errorObject{Message: plainText(reported)}, true
		}
		return errorObjectOf(inner), true
	case plainText(outer["type"]) == "error", plainText(outer["object"]) == "error":
		return errorObjectOf(outer), true
	case outer["detail"] != nil:
		return errorObject{Message: plainText(outer["detail"])}, true
	case outer["message"] != nil:
		return errorObjectOf(outer), true
	}
	return errorObject{}, false
}

func errorObjectOf(members map[string]json.RawMessage) errorObject {
	text := func(name string) string { return plainText(members[name]) }
	return errorObject{text("message"), text("code"), text("type"), text("param")}
}

// plainText returns the value of a JSON string, "" for null or nothing, and the JSON itself for anything else.
func plainText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// err converts an error object to an Error. Without a meaningful HTTP status, the code may be a status.
func (o errorObject) err(status int) *Error {
	e := &Error{Status: status, Message: o.Message, Code: o.Code, param: o.Param, retryAfter: -1}
	if n, err := strconv.Atoi(o.Code); err == nil && n >= 400 && n < 600 && status < 300 {
		e.Status = n
	}
	switch {
	case e.Status >= 300:
		e.Kind = kindOf(e.Status)
	case strings.Contains(o.Code+o.Type, "rate_limit") || o.Type == "overloaded_error":
		e.Kind = RateLimited
	case strings.Contains(o.Code+o.Type, "invalid_request") || strings.Contains(o.Code, "content_policy"):
		e.Kind = Refused
	default:
		e.Kind = Server
	}
	return e
}

func kindOf(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusRequestTimeout:
		return Timeout
	case status >= 500:
		return Server
	}
	return Refused
}

// maxRetryAfter limits the wait that an endpoint can request.
const maxRetryAfter = 20 * time.Second

// retryAfter parses the wait that an endpoint requests: seconds, an HTTP date, or the milliseconds that some send as
// well. It is at most maxRetryAfter, and negative if none is given.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := time.Duration(-1)
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		wait = seconds(ms / 1000)
	} else if s, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After")), 64); err == nil && s >= 0 {
		wait = seconds(s)
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait = max(at.Sub(now), 0)
	}
	return min(wait, maxRetryAfter)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
}
