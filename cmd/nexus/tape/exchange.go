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
	Number  int             `json:"number,omitzero"` // counts equal requests in a scope, from 1
	To      string          `json:"to,omitempty"`    // the server or the model
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Mark    string          `json:"mark,omitempty"` // of the secrets removed from Request
	At      time.Time       `json:"at,omitzero"`
	Zone    string          `json:"zone,omitempty"` // name of the time zone of At
}

// answer is the place of a recorded answer.
type answer struct {
	scope  string
	mark   string
	run    int
	number int
	ended  bool // its caller ended it
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
func (t *Tape) add(e *exchange, at results.Place) error {
	switch e.Kind {
	case kindStart:
		t.began = inZone(e.At, e.Zone)
	case kindTools:
		var list tools
		if err := json.Unmarshal(e.Answer, &list); err != nil {
			return fmt.Errorf("the tools of %s are damaged: %w; record again", e.To, err)
		}
		t.tools[e.To] = list
	default:
		k, ended := keyOf(e.Kind, e.To, e.Request), jsonrpc.Get(e.Answer, "ended") != nil
		t.index[k] = append(t.index[k], answer{e.Scope, e.Mark, e.Run, e.Number, ended, at})
	}
	return nil
}

// sort orders the answers to each request. It drops answers of runs after which a scope was run again, and abandoned
// requests if an equal one was answered: speculative steps differ between runs.
func (t *Tape) sort() {
	last := map[string]int{}
	for _, answers := range t.index {
		for _, a := range answers {
			last[a.scope] = max(last[a.scope], a.run)
		}
	}
	delete(last, "") // requests without a scope are not run again as a whole
	for k, answers := range t.index {
		answers = slices.DeleteFunc(answers, func(a answer) bool { return a.run < last[a.scope] })
		answered := map[[2]string]bool{}
		for _, a := range answers {
			if !a.ended {
				answered[[2]string{a.scope, a.mark}] = true
			}
		}
		answers = slices.DeleteFunc(answers, func(a answer) bool { return a.ended && answered[[2]string{a.scope, a.mark}] })
		slices.SortFunc(answers, func(a, b answer) int {
			return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.number, b.number))
		})
		t.index[k] = answers
	}
}

// next returns the number of a request in its scope, from 1.
func (t *Tape) next(scope string, k counted) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[scope] == nil {
		t.counts[scope] = map[counted]int{}
	}
	t.counts[scope][k]++
	return t.counts[scope][k]
}

// asked is a request without secrets.
type asked struct {
	scope, kind, to string
	raw             []byte
	key             key
	mark            string
}

// exchange records the result of ask. In a replay it passes the recorded answer to load instead. The error means that
// no answer was recorded.
func (t *Tape) exchange(
	ctx context.Context, kind, to string, request any, ask func() any, load func([]byte) error,
) error {
	raw, err := jsonv2.Marshal(request) // as lines are written
	var hidden []byte
	if err == nil {
		raw, hidden, err = t.clean(raw)
	}
	if err != nil {
		return fmt.Errorf("encoding a request to %s: %w", to, err)
	}
	q := asked{scopeOf(ctx), kind, to, raw, keyOf(kind, to, raw), markOf(hidden)}
	if t.Replays() {
		return t.replay(q, load)
	}
	number := 1 // a text has one vector
	if kind != kindEmbed {
		number = t.next(q.scope, counted{key: q.key})
	}
	text, err := json.Marshal(ask())
	if err == nil {
		text, _, err = t.clean(text)
	}
	if err != nil {
		return nil // an answer that is not JSON is not recorded; the caller has it
	}
	e := exchange{Kind: kind, Scope: q.scope, Number: number, To: to, Request: raw, Answer: text, Mark: q.mark}
	_ = t.write(&e) // Close returns the error
	return nil
}

// replay finds the answer in the scope of the request or, if that has none, in another scope. It prefers a request with
// the same secrets, and otherwise accepts one with any.
func (t *Tape) replay(q asked, load func([]byte) error) error {
	found := t.index[q.key]
	keep := func(fits func(answer) bool) bool {
		some := slices.DeleteFunc(slices.Clone(found), func(a answer) bool { return !fits(a) })
		if len(some) > 0 {
			found = some
		}
		return len(some) > 0
	}
	if !keep(func(a answer) bool { return a.scope == q.scope }) && len(found) > 0 {
		other := found[0].scope
		keep(func(a answer) bool { return a.scope == other })
	}
	count := counted{key: q.key}
	if keep(func(a answer) bool { return a.mark == q.mark }) {
		count.mark = q.mark
	}
	number := 1
	if q.kind != kindEmbed {
		number = t.next(q.scope, count)
	}
	if number > len(found) {
		return t.miss(q, len(found))
	}
	e, err := t.line(found[number-1].place)
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
