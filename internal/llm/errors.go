package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/secret"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Kind says in which way a model failed to answer.
type Kind string

// The kinds of failure. The first five may pass by themselves and are retried.
const (
	RateLimited Kind = "rate_limited" // 429
	Server      Kind = "server"       // 5xx, or an error in the middle of a stream
	Timeout     Kind = "timeout"      // no answer, or no further piece of it, in time
	Unreachable Kind = "unreachable"  // no connection, or none that brought an answer
	Cut         Kind = "cut"          // the stream ended before the answer did
	Truncated   Kind = "truncated"    // the answer reached the length limit of the model
	Refused     Kind = "refused"      // the endpoint or the model said no
	Invalid     Kind = "invalid"      // what came is no answer of a model
)

// Error says why there is no answer. Its text is one line and never contains the API key.
type Error struct {
	Kind    Kind
	Status  int    // HTTP status, 0 if there was none
	Message string // one line
	Refusal bool   // the model itself refuses, and Message is what it says

	model       string
	code        string        // the endpoint's own code, such as insufficient_quota
	param       string        // the parameter the endpoint complains about
	retryAfter  time.Duration // how long the endpoint asks to wait; negative if it did not say
	unconnected bool          // no connection was made
}

// Error implements error.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.model != "" {
		text = "model " + e.model + ": " + text
	}
	if e.Status != 0 {
		text += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Retryable reports whether the same question may well be answered a little later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited:
		return e.code != "insufficient_quota"
	case Server, Timeout, Unreachable, Cut:
		return true
	}
	return false
}

// Declined reports whether the model, or a filter of its endpoint, did not want to answer the question. Asking in
// another way would go round that.
func (e *Error) Declined() bool {
	return e.Kind == Refused && (e.Status == 0 || strings.Contains(e.code, "content_policy") || e.code == "content_filter")
}

func failure(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), retryAfter: -1}
}

// refusal is the failure of a model that refuses.
func refusal(words string) *Error {
	e := failure(Refused, "%s", words)
	e.Refusal = true
	return e
}

// Bounds of an endpoint's own words, in bytes: as they come, and in an error.
const (
	maxWords   = 64 << 10
	maxMessage = 300
)

// finish makes an error fit to be shown. The key goes first, so that no part of it outlasts the cut.
func (e *Error) finish(model string, apiKey secret.String) {
	e.model = model
	if key := apiKey.Reveal(); key != "" {
		e.Message = strings.ReplaceAll(e.Message, key, "[redacted]")
	}
	e.Message = short.Line(e.Message, maxMessage)
}

// complaint is the error object of an endpoint, in the dialects that are in use.
type complaint struct {
	Message string
	Code    string
	Type    string
	Param   string
}

// readComplaint finds the error in a JSON body or frame: {"error":{…}}, {"error":"…"}, [{"error":{…}}],
// {"message":…} as older vLLM writes it, {"detail":…}, or {"type":"error",…} of the Responses API. It reports
// false where there is none.
func readComplaint(data []byte) (complaint, bool) {
	data = trimJSON(data)
	if len(data) > 0 && data[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil || len(list) == 0 {
			return complaint{}, false
		}
		return readComplaint(list[0])
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Object  string          `json:"object"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Param   json.RawMessage `json:"param"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return complaint{}, false
	}
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		var inner struct {
			Message json.RawMessage `json:"message"`
			Code    json.RawMessage `json:"code"`
			Type    json.RawMessage `json:"type"`
			Param   json.RawMessage `json:"param"`
		}
		if json.Unmarshal(outer.Error, &inner) != nil {
			return complaint{Message: plainText(outer.Error)}, true
		}
		return complaint{plainText(inner.Message), plainText(inner.Code), plainText(inner.Type), plainText(inner.Param)}, true
	}
	if outer.Type == "error" || outer.Object == "error" {
		return complaint{plainText(outer.Message), plainText(outer.Code), outer.Type, plainText(outer.Param)}, true
	}
	if outer.Detail != nil {
		return complaint{Message: plainText(outer.Detail)}, true
	}
	if outer.Message != nil {
		return complaint{plainText(outer.Message), plainText(outer.Code), outer.Type, plainText(outer.Param)}, true
	}
	return complaint{}, false
}

// plainText is a JSON string's value, "" for null or nothing, and the JSON itself for anything else.
func plainText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// err turns a complaint that came without a telling HTTP status into an Error: the code may be a status itself.
func (c complaint) err(status int) *Error {
	e := &Error{Status: status, Message: c.Message, code: c.Code, param: c.Param, retryAfter: -1}
	if n, err := strconv.Atoi(c.Code); err == nil && n >= 400 && n < 600 && status < 300 {
		e.Status = n
	}
	switch {
	case e.Status >= 300:
		e.Kind = kindOf(e.Status)
	case strings.Contains(c.Code+c.Type, "rate_limit") || c.Type == "overloaded_error":
		e.Kind = RateLimited
	case strings.Contains(c.Code+c.Type, "invalid_request") || strings.Contains(c.Code, "content_policy"):
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

// maxRetryAfter bounds how long an endpoint can make us wait.
const maxRetryAfter = 20 * time.Second

// retryAfter reads how long an endpoint asks to wait: whole or broken seconds, an HTTP date, or the
// milliseconds that some send as well. It is capped, and negative if nothing was said.
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
