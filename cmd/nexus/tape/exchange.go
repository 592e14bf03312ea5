package tape

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// The kinds of lines.
const (
	kindStart = "start" // of a recording
	kindTools = "tools" // the tools of a server
	kindCall  = "call"  // a request to a server
	kindModel = "model" // a request to a model
	kindEmbed = "embed" // the vector of a text
)

// exchange is a line of a recording.
type exchange struct {
	Kind    string          `json:"kind"`
	Run     int             `json:"run"`
	Scope   string          `json:"scope,omitempty"`
	Number  int             `json:"number,omitzero"` // of the requests of its scope that are the same, from 1
	To      string          `json:"to,omitempty"`    // the server or the model
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	At      time.Time       `json:"at,omitzero"`
}

// answer is where an answer lies.
type answer struct {
	scope  string
	run    int
	number int
	ended  bool // by its caller
	place  results.Place
}

// keyOf hashes a request. The order of members does not matter.
func keyOf(kind, to string, request []byte) key {
	var value any
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber()
	if d.Decode(&value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			request = sorted
		}
	}
	return sha256.Sum256(slices.Concat([]byte(kind), []byte{0}, []byte(to), []byte{0}, request))
}

// add indexes a line of a recording.
func (t *Tape) add(e *exchange, at results.Place) {
	switch e.Kind {
	case kindStart:
		t.began = e.At
	case kindTools:
		var list tools
		if json.Unmarshal(e.Answer, &list) == nil {
			t.tools[e.To] = list
		}
	default:
		k := keyOf(e.Kind, e.To, e.Request)
		t.index[k] = append(t.index[k], answer{e.Scope, e.Run, e.Number, jsonrpc.Get(e.Answer, "ended") != nil, at})
	}
}

// sort orders the answers to each request. It leaves out those of runs after which a scope was run again, and requests
// that were given up where the same one was answered, too: steps that begin early are not always the same.
func (t *Tape) sort() {
	last := map[string]int{}
	for _, answers := range t.index {
		for _, a := range answers {
			last[a.scope] = max(last[a.scope], a.run)
		}
	}
	delete(last, "") // what belongs to no scope is not run again as a whole
	for k, answers := range t.index {
		answers = slices.DeleteFunc(answers, func(a answer) bool { return a.run < last[a.scope] })
		answered := map[string]bool{}
		for _, a := range answers {
			answered[a.scope] = answered[a.scope] || !a.ended
		}
		answers = slices.DeleteFunc(answers, func(a answer) bool { return a.ended && answered[a.scope] })
		slices.SortFunc(answers, func(a, b answer) int {
			return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.number, b.number))
		})
		t.index[k] = answers
	}
}

// next counts a request of a scope, from 1.
func (t *Tape) next(scope string, k key) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[scope] == nil {
		t.counts[scope] = map[key]int{}
	}
	t.counts[scope][k]++
	return t.counts[scope][k]
}

// exchange records what ask returns. In a replay it hands what was recorded to load instead. The error says that there
// is nothing to replay.
func (t *Tape) exchange(
	ctx context.Context, kind, to string, request any, ask func() any, load func([]byte) error,
) error {
	raw, err := jsonv2.Marshal(request) // as lines are written
	if err != nil {
		return fmt.Errorf("encoding a request to %s: %w", to, err)
	}
	if raw, err = t.clean(raw); err != nil {
		return fmt.Errorf("encoding a request to %s: %w", to, err)
	}
	scope, k := scopeOf(ctx), keyOf(kind, to, raw)
	number := 1 // a text has one vector
	if kind != kindEmbed {
		number = t.next(scope, k)
	}
	if t.Replays() {
		return t.replay(kind, to, raw, scope, k, number, load)
	}
	text, err := json.Marshal(ask())
	if err == nil {
		text, err = t.clean(text)
	}
	if err != nil {
		return nil // no JSON, and so no answer; the caller has it already
	}
	_ = t.write(&exchange{Kind: kind, Scope: scope, Number: number, To: to, Request: raw, Answer: text}) // Close tells
	return nil
}

func (t *Tape) replay(kind, to string, raw []byte, scope string, k key, number int, load func([]byte) error) error {
	answers := t.index[k]
	own := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.scope != scope })
	if len(own) == 0 && len(answers) > 0 { // in another scope
		own = slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.scope != answers[0].scope })
	}
	if number > len(own) {
		return t.miss(scope, kind, to, raw, len(own))
	}
	e, err := t.line(own[number-1].place)
	if err != nil {
		return err
	}
	return load(e.Answer)
}

func (t *Tape) line(at results.Place) (e exchange, err error) {
	text := make([]byte, at.Length)
	if _, err = t.file.ReadAt(text, at.Offset); err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		err = fmt.Errorf("replaying: reading %s: %w", t.path, err)
	}
	return e, err
}
