// Package tape records the exchanges of a router with models and servers, and replays them.
//
// [Record] opens a folder to append to, and [Replay] one to answer from. [Tape.Calls] wraps requests to servers,
// [Tape.Model] and [Tape.Embedder] wrap models, and [Tape.Dialers] replaces the servers, whose tools were recorded. A
// nil *Tape passes everything through. Methods are safe for concurrent use.
//
// Exchanges belong to the scope of their context ([In]). The n-th of several equal requests gets the n-th recorded
// answer of the same scope or, if the scope was not recorded, of another. Therefore neither the order nor the
// concurrency of requests changes an answer. A request without an answer fails, and [Tape.Done] names it.
//
// Secrets of the configuration and values that look like secrets (package redact) are replaced before anything is
// written. Requests are compared without them.
package tape

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// fileName is the one file of the folder: a JSON line for each exchange.
const fileName = "exchanges.jsonl"

// Tape records or replays.
type Tape struct {
	path    string
	secrets *redact.Masker
	began   time.Time // of the recording

	out *results.Writer // nil = it replays
	run int             // counts the runs of a resumed recording

	file  *os.File          // to replay
	index map[key][]*answer // by request, in the order of run and number
	tools map[string]tools  // by server
	wg    sync.WaitGroup    // of the replayed servers

	mu     sync.Mutex
	counts map[string]map[key]int // requests so far, by scope
	failed error                  // of writing
	missed map[string]error
}

// key is the hash of a request without its secrets.
type key [32]byte

// Record opens or creates a folder to append exchanges to, without the secrets.
func Record(folder string, secrets []string) (*Tape, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	now := time.Now().Truncate(time.Second)
	zone, _ := now.Zone()
	t := newTape(folder, secrets)
	t.began = inZone(now, zone)
	out, err := results.Resume(t.path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	t.out = out
	err = t.read(func(e *exchange, _ results.Place) error {
		t.run = max(t.run, e.Run)
		if e.Kind == kindStart {
			t.began = inZone(e.At, e.Zone) // the time of a recording stays the same
		}
		return nil
	})
	t.run++
	if err == nil {
		err = t.write(&exchange{Kind: kindStart, At: t.began, Zone: t.began.Location().String()})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("recording: %w", err), out.Close())
	}
	return t, nil
}

// Replay opens a recording. It removes the same secrets from requests as Record, so that they match.
func Replay(folder string, secrets []string) (*Tape, error) {
	t := newTape(folder, secrets)
	none := fmt.Errorf("replaying: %s has no recording; make one with --record", folder)
	file, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none
	}
	if err != nil {
		return nil, fmt.Errorf("replaying: %w", err)
	}
	t.file = file
	if err := t.read(t.add); err != nil {
		return nil, errors.Join(fmt.Errorf("replaying: %w", err), file.Close())
	}
	if t.began.IsZero() {
		return nil, errors.Join(none, file.Close())
	}
	t.sort()
	return t, nil
}

func newTape(folder string, secrets []string) *Tape {
	return &Tape{
		path: filepath.Join(folder, fileName), secrets: redact.NewMasker(secrets), index: map[key][]*answer{},
		tools: map[string]tools{}, counts: map[string]map[key]int{}, missed: map[string]error{},
	}
}

// inZone returns t in a zone with that name and the offset of t, independent of the machine's zone.
func inZone(t time.Time, name string) time.Time {
	_, offset := t.Zone()
	return t.In(time.FixedZone(name, offset))
}

// read reads all exchanges except a torn last line.
func (t *Tape) read(each func(e *exchange, at results.Place) error) error {
	line := 0
	_, err := results.Read(t.path, func(e *exchange, at results.Place) error {
		line++
		if err := each(e, at); err != nil {
			return &results.Error{Path: t.path, Line: line, Text: err.Error()}
		}
		return nil
	})
	return err
}

// Close ends the recording. Stop the router first. The error means that the recording is incomplete.
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

// Now returns the time for planners: the start of the recording, in its zone, so that "tomorrow" is the same day in a
// replay and prompts are equal.
func (t *Tape) Now() time.Time {
	if t == nil {
		return time.Now()
	}
	return t.began
}

type scopeKey struct{}

// In returns a context whose exchanges belong to a scope, such as one question.
func In(ctx context.Context, scope string) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope)
}

func scopeOf(ctx context.Context) string {
	scope, _ := ctx.Value(scopeKey{}).(string)
	return scope
}

// Done ends the scope of a context. The error is about its first request without a recorded answer.
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
