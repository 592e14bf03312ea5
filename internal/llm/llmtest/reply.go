package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Fault is a kind of stream failure.
type Fault string

// The faults. Those in the middle of a stream come after half of the text.
const (
	Stall      Fault = "stall"       // silence until the client goes away
	StallFirst Fault = "stall_first" // silence from the start, before any header
	Drop       Fault = "drop"        // the connection breaks
	DropFirst  Fault = "drop_first"  // the connection breaks before any header
	End        Fault = "end"         // the stream ends without a word
	HTML       Fault = "html"        // a page instead of an answer, status 200
	ErrorFrame Fault = "error_frame" // data: {"error":…}
	ErrorEvent Fault = "error_event" // event: error
	LongLine   Fault = "long_line"   // a line of LongLineBytes
	Whole      Fault = "whole"       // one JSON document although a stream was asked for
	Comments   Fault = "comments"    // comment lines and usage chunks without choices all over the stream
)

// LongLineBytes is the length of the line that LongLine sends, unless the client leaves before.
const LongLineBytes = 128 << 20

// Reply is one scripted response. The zero value is an empty text, sent immediately.
type Reply struct {
	Text  string        // what the model says
	Chunk int           // bytes of each piece of the stream, cut at characters; 0 is 16
	First time.Duration // silence before the first piece
	Every time.Duration // silence between pieces

	Status int         // an HTTP error instead, with Text as its message
	Code   string      // of that error
	Header http.Header // sent as well

	// parameters that are refused with HTTP 400: a name at the top level of the body, json_schema, strict or
	// json_object
	Refuse []string
	Fault  Fault
	Finish string // finish_reason, "stop" if empty; or the status of a response

	Embed func(text string) []float32 // the vectors of an embeddings request

	Raw     string // sent unchanged, with RawType, instead of any other content
	RawType string

	Calls []Call // of tools, after the text

	refused string
}

// JSON returns a Reply with a value encoded as JSON.
func JSON(v any) Reply {
	text, err := json.Marshal(v)
	if err != nil {
		return Reply{Status: http.StatusInternalServerError, Text: err.Error()}
	}
	return Reply{Text: string(text)}
}

// refuses names the first parameter of the request that the reply refuses.
func (r Reply) refuses(req Request) (string, bool) {
	for _, p := range r.Refuse {
		switch p {
		case "strict":
			if req.Strict {
				return p, true
			}
		case "json_schema", "json_object":
			if req.Form == p {
				return p, true
			}
		case "stream":
			if req.Stream {
				return p, true
			}
		default:
			if req.Has(p) {
				return p, true
			}
		}
	}
	return "", false
}

func refuse(w http.ResponseWriter, status int, message, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"error": map[string]any{"message": message, "type": "scripted_error", "code": code,
		"param": nil}})
}

// writeJSON writes a value. Errors mean that the client is gone.
func writeJSON(w io.Writer, v any) {
	_ = json.NewEncoder(w).Encode(v)
}

func (r Reply) write(w http.ResponseWriter, hr *http.Request, req Request) {
	maps.Copy(w.Header(), r.Header)
	switch {
	case r.refused != "":
		refuse(w, r.Status, fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", r.refused),
			"unsupported_parameter")
	case r.Raw != "":
		if r.RawType != "" {
			w.Header().Set("Content-Type", r.RawType)
		}
		if r.Status != 0 {
			w.WriteHeader(r.Status)
		}
		_, _ = io.WriteString(w, r.Raw)
	case r.Status != 0 && req.Messages() && r.Code == "":
		errorOfMessages(w, r.Status, r.Text)
	case r.Status != 0:
		refuse(w, r.Status, r.Text, r.Code)
	case r.Fault == StallFirst:
		<-hr.Context().Done()
	case r.Fault == DropFirst:
		panic(http.ErrAbortHandler)
	case r.Fault == HTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
	case req.Embeddings():
		if r.pause(hr, r.First) {
			w.Header().Set("Content-Type", "application/json")
			writeJSON(w, r.vectors(req))
		}
	case r.Fault == Whole || !req.Stream:
		if r.pause(hr, r.First) {
			w.Header().Set("Content-Type", "application/json")
			writeJSON(w, r.dialect(req).document(r.Text, r.finish()))
		}
	default:
		r.stream(w, hr, req)
	}
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// stream writes the text piece by piece.
func (r Reply) stream(w http.ResponseWriter, hr *http.Request, req Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	d := r.dialect(req)
	send := func(frames ...string) {
		_, _ = io.WriteString(w, strings.Join(frames, "")) // a client that is gone is noticed below
		_ = out.Flush()
	}
	send(d.begin()...)
	due := time.Now().Add(r.First)
	pieces := r.pieces()
	for i, piece := range pieces {
		if !r.pause(hr, time.Until(due)) {
			return
		}
		due = due.Add(r.Every)
		if i == len(pieces)/2 && r.misbehave(w, hr, send) {
			return
		}
		if r.Fault == Comments {
			send(": keep-alive\n\n", d.usageOnly())
		}
		send(d.delta(piece))
	}
	send(d.end(r.Text, r.finish())...)
}

// misbehave simulates the fault and reports whether the stream ends with it.
func (r Reply) misbehave(w io.Writer, hr *http.Request, send func(...string)) bool {
	switch r.Fault {
	case Stall:
		<-hr.Context().Done()
	case Drop:
		panic(http.ErrAbortHandler)
	case End:
	case ErrorFrame:
		send(`data: {"error":{"message":"the engine crashed","type":"server_error","code":null}}` + "\n\n")
	case ErrorEvent:
		send("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"the engine crashed\"}\n\n")
	case LongLine:
		_, _ = io.WriteString(w, "data: ")
		block := strings.Repeat("a", 64<<10)
		for n := 0; n < LongLineBytes; n += len(block) {
			if _, err := io.WriteString(w, block); err != nil {
				break
			}
		}
	default:
		return false
	}
	return true
}

func (r Reply) pause(hr *http.Request, d time.Duration) bool {
	if d <= 0 {
		return hr.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-hr.Context().Done():
		return false
	}
}

// pieces splits the text between characters.
func (r Reply) pieces() []string {
	size := cmp.Or(max(r.Chunk, 0), 16)
	var out []string
	for text := r.Text; text != ""; {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}
