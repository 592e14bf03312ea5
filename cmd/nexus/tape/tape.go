// Package tape records the exchanges of a router with models and servers, and answers from them.
//
// [Record] opens a folder to append to and [Replay] one to answer from. A Tape stands in three places: [Tape.Call]
// around requests to servers, [Tape.Model] and [Tape.Embedder] around models, and [Tape.Dialers] in place of the
// servers themselves, of which it knows the tools. A nil *Tape lets everything pass. Methods may be called from any
// goroutine.
//
// Exchanges belong to the scope of their context ([In]). A request is answered with what it was answered in the same
// scope, the n-th with the n-th; in a scope that was not recorded, with what it was answered in another. So neither
// the order nor the number of requests under way changes an answer. A request without an answer fails, and
// [Tape.Done] says which one and what is nearest.
//
// Secrets are replaced before anything is written: those of the configuration, and what looks like one
// (package redact). Requests are compared after that.
package tape

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// fileName is the one file of the folder: a JSON line for each exchange.
const fileName = "exchanges.jsonl"

// Tape records or replays.
type Tape struct {
	path    string
	secrets *strings.Replacer
	began   time.Time // of the recording

	out *results.Writer // nil = it replays
	run int             // a recording that is resumed has several

	file  *os.File         // to replay
	index map[key][]answer // by request, in the order of run and number
	tools map[string]tools // by server
	wg    sync.WaitGroup   // of their stand-ins

	mu     sync.Mutex
	counts map[string]map[key]int // requests so far, by scope
	failed error                  // of writing
	missed map[string]error
}

// key is the hash of a request.
type key [32]byte

// Record opens a folder, which it makes where it is missing, to append exchanges to. Secrets shorter than eight bytes
// are not looked for: they would occur by chance.
func Record(folder string, secrets []string) (*Tape, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	t := newTape(folder, time.Now().Truncate(time.Second))
	t.secrets = replacer(secrets)
	out, err := results.Resume(t.path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	t.out = out
	err = t.read(func(e *exchange, _ results.Place) {
		t.run = max(t.run, e.Run)
		if e.Kind == kindStart {
			t.began = e.At // the day of a recording stays the same
		}
	})
	t.run++
	if err == nil {
		err = t.write(&exchange{Kind: kindStart, At: t.began})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("recording: %w", err), out.Close())
	}
	return t, nil
}

// Replay opens a recording. Requests lack the same secrets as in Record, so that they are found.
func Replay(folder string, secrets []string) (*Tape, error) {
	t := newTape(folder, time.Time{})
	t.secrets = replacer(secrets)
	file, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replaying: %s has no recording; make one by --record", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("replaying: %w", err)
	}
	t.file = file
	if err := t.read(t.add); err != nil {
		return nil, errors.Join(fmt.Errorf("replaying: %w", err), file.Close())
	}
	t.sort()
	return t, nil
}

func newTape(folder string, began time.Time) *Tape {
	return &Tape{
		path: filepath.Join(folder, fileName), began: began, index: map[key][]answer{}, tools: map[string]tools{},
		counts: map[string]map[key]int{}, missed: map[string]error{},
	}
}

// read reads all exchanges. A torn last line is left out.
func (t *Tape) read(each func(e *exchange, at results.Place)) error {
	_, err := results.Read(t.path, func(e *exchange, at results.Place) error {
		each(e, at)
		return nil
	})
	return err
}

// Close ends the recording, after the router. The error says that it is not complete.
func (t *Tape) Close() error {
	switch {
	case t == nil:
		return nil
	case t.out == nil:
		t.wg.Wait()
		return t.file.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.failed, t.out.Close())
}

// Replays reports whether the Tape answers instead of models and servers.
func (t *Tape) Replays() bool { return t != nil && t.out == nil }

// Now is the time for those who plan: that of the recording, so that "tomorrow" is the same day in a replay.
func (t *Tape) Now() time.Time {
	if t == nil {
		return time.Now()
	}
	return t.began
}

type scopeKey struct{}

// In puts what is done with a context into a scope, such as one question.
func In(ctx context.Context, scope string) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope)
}

func scopeOf(ctx context.Context) string {
	scope, _ := ctx.Value(scopeKey{}).(string)
	return scope
}

// Done ends the scope of a context. The error is its first request without an answer: it was not replayed.
func (t *Tape) Done(ctx context.Context) error {
	if t == nil {
		return nil
	}
	scope := scopeOf(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.missed[scope]
	delete(t.missed, scope)
	delete(t.counts, scope)
	return err
}

// write appends an exchange. The first failure is kept for Close.
func (t *Tape) write(e *exchange) error {
	e.Run = t.run
	err := t.out.Write(e)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed == nil {
			t.failed = fmt.Errorf("recording: %w", err)
		}
	}
	return err
}
