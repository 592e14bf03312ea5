package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stub embeds by the words that texts contain, one dimension a word, and keeps what it was asked.
type stub struct {
	words []string
	delay time.Duration
	fails func(texts []string) error // nil never

	mu    sync.Mutex
	asked [][]string // by request
}

func (s *stub) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	s.mu.Lock()
	s.asked = append(s.asked, texts)
	s.mu.Unlock()
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fails != nil {
		if err := s.fails(texts); err != nil {
			return nil, err
		}
	}
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, len(s.words)+1)
		v[len(s.words)] = 0.01
		for i, w := range s.words {
			if strings.Contains(strings.ToLower(text), w) {
				v[i] = 1
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// take returns the texts that were asked for since, in order.
func (s *stub) take() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.asked {
		texts = append(texts, request...)
	}
	s.asked = nil
	slices.Sort(texts)
	return texts
}

// finding returns a Finder whose searches wait for all vectors.
func finding(t *testing.T, x *Index, e Embedder) *Finder {
	f := NewFinder(x, FinderOptions{Embedder: e, Timeout: time.Hour})
	t.Cleanup(f.Close)
	return f
}

// notes are two tools of which the question's words prefer the first and its meaning the second.
func notes() *Index {
	x := New()
	x.Update("n", []Tool{
		tool("n", "read_note", "Read a note"),
		tool("n", "take_note", "Append a text to a note"),
	})
	return x
}

const writeNote = "write something into the note"

func TestMeaningChangesTheOrder(t *testing.T) {
	words := ids(NewFinder(notes(), FinderOptions{}).Search(t.Context(), writeNote, SearchOptions{}))
	if !slices.Equal(words, []string{"n::read_note", "n::take_note"}) {
		t.Fatalf("by words: got %v", words)
	}
	f := finding(t, notes(), synonyms{&stub{words: []string{"into", "append"}}})
	if got := ids(f.Search(t.Context(), writeNote, SearchOptions{})); got[0] != "n::take_note" {
		t.Errorf("by meaning: got %v, want n::take_note first", got)
	}
	if got := ids(f.Search(t.Context(), writeNote, SearchOptions{Limit: 1})); !slices.Equal(got, []string{"n::take_note"}) {
		t.Errorf("the best alone: got %v", got)
	}
}

// synonyms tells its embedder that to append, or to jot, is to write into.
type synonyms struct{ *stub }

func (s synonyms) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var same []string
	for _, text := range texts {
		same = append(same, strings.NewReplacer("into", "append", "jot", "append").Replace(text))
	}
	return s.stub.Embed(ctx, same)
}

// A tool that shares no word with the question is found by meaning, unless the search is literal or may not find it.
func TestMeaningFindsOtherWords(t *testing.T) {
	f := finding(t, notes(), synonyms{&stub{words: []string{"append", "read"}}})
	all := func(string, string) bool { return true }
	for name, c := range map[string]struct {
		opts SearchOptions
		want []string
	}{
		"found":    {SearchOptions{Limit: 1, Allow: all}, []string{"n::take_note"}},
		"literal":  {SearchOptions{Limit: 1, Literal: true}, nil},
		"hidden":   {SearchOptions{Allow: func(_, name string) bool { return name != "take_note" }}, []string{"n::read_note"}},
		"the rest": {SearchOptions{}, []string{"n::take_note", "n::read_note"}},
	} {
		if got := ids(f.Search(t.Context(), "jot", c.opts)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestOnlyWhatIsNewIsEmbedded(t *testing.T) {
	x, e := notes(), &stub{words: []string{"note"}}
	f := finding(t, x, e)
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 3 {
		t.Errorf("first question: got %q, want it and two tools", got)
	}
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 0 {
		t.Errorf("the same question: got %q, want nothing", got)
	}
	f.Search(t.Context(), "read", SearchOptions{})
	if got := e.take(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("another question: got %q, want it alone", got)
	}
	changed := tool("n", "read_note", "Read a note")
	changed.Instructions = "Notes are texts."
	x.Update("n", []Tool{changed, tool("n", "take_note", "Write into a note"), tool("n", "list_notes", "List notes")})
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 2 || !strings.Contains(got[1], "Write into") || !strings.Contains(got[0], "list_notes") {
		t.Errorf("after an update: got %q, want the new tool and the one with another text", got)
	}
	f.Search(t.Context(), "Read a note. Then write into the notes.", SearchOptions{})
	if got := e.take(); len(got) != 3 {
		t.Errorf("a question of two sentences: got %q, want it and both", got)
	}
}

// Vectors are requested as soon as tools are indexed, in batches.
func TestToolsAreEmbeddedBeforeTheFirstQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, e := New(), &stub{words: []string{"7"}}
		var tools []Tool
		for i := range 200 {
			tools = append(tools, tool("n", fmt.Sprintf("note_%d", i), "Read a note"))
		}
		x.Update("n", tools)
		f := finding(t, x, e)
		f.Refresh()
		synctest.Wait()
		if n := len(e.asked); n != (200+embedBatch-1)/embedBatch || len(e.take()) != 200 {
			t.Errorf("got %d requests, want batches of %d tools", n, embedBatch)
		}
		hits := f.Search(t.Context(), "note", SearchOptions{Limit: 5})
		if got := e.take(); len(got) != 1 || len(hits) != 5 {
			t.Errorf("the question: got requests for %q and %d hits, want one text and 5", got, len(hits))
		}
	})
}

func TestFailingEmbedderIsLeftAlone(t *testing.T) {
	for name, e := range map[string]*stub{
		"error":    {fails: func([]string) error { return errors.New("out of order") }},
		"too slow": {delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := NewFinder(notes(), FinderOptions{Embedder: e, Timeout: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				defer f.Close()
				search := func() {
					t.Helper()
					start := time.Now()
					if got := ids(f.Search(t.Context(), writeNote, SearchOptions{})); !slices.Equal(got, []string{"n::read_note", "n::take_note"}) {
						t.Errorf("got %v, want the order by words", got)
					}
					if took := time.Since(start); took > time.Second {
						t.Errorf("took %v, want at most the time limit", took)
					}
				}
				for range 5 {
					search()
					synctest.Wait()
				}
				if n := len(e.take()); n != 3 {
					t.Errorf("asked for %d texts, want 3 of one attempt", n)
				}
				time.Sleep(2 * embedPause)
				search()
				synctest.Wait()
				if n := len(e.take()); n != 3 {
					t.Errorf("after the pause: asked for %d texts, want 3", n)
				}
				time.Sleep(2 * embedPause)
				synctest.Wait()
				if n := strings.Count(log.String(), "level=WARN"); n != 4 || strings.Count(log.String(), "by words alone") != 4 {
					t.Errorf("got %d warnings, want one of the question and one of the tools each time:\n%s", n, log.String())
				}
				e.fails, e.delay, e.words = nil, 0, []string{"write", "take_note"}
				f.Search(t.Context(), writeNote, SearchOptions{})
				if n := len(e.take()); n != 3 {
					t.Errorf("after the recovery: asked for %d texts, want 3", n)
				}
			})
		})
	}
}

// Slow vectors of tools hold searches up for the time limit after they were first requested, and no longer. Tools that
// have vectors are ranked by these while others cannot be embedded.
func TestSearchWaitsOnceForTheVectorsOfTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, e := notes(), &stub{words: []string{"append"}}
		f := NewFinder(x, FinderOptions{Embedder: synonyms{e}, Timeout: time.Second})
		defer f.Close()
		f.Search(t.Context(), writeNote, SearchOptions{})
		e.fails = func(texts []string) error {
			if strings.Contains(texts[0], "list_notes") {
				time.Sleep(20 * time.Second)
				return errors.New("not this one")
			}
			return nil
		}
		x.Update("m", []Tool{tool("m", "list_notes", "List notes")})
		for i, want := range []time.Duration{time.Second, 0, 0} {
			start := time.Now()
			got := ids(f.Search(t.Context(), fmt.Sprint("jot ", i), SearchOptions{Limit: 1}))
			if took := time.Since(start); took != want || !slices.Equal(got, []string{"n::take_note"}) {
				t.Errorf("search %d: got %v after %v, want n::take_note after %v", i, got, took, want)
			}
		}
		time.Sleep(25 * time.Second)
		if got := ids(f.Search(t.Context(), "jot", SearchOptions{Limit: 1})); !slices.Equal(got, []string{"n::take_note"}) {
			t.Errorf("after the failure: got %v, want n::take_note", got)
		}
	})
}

func TestCancelledSearchIsNoFailure(t *testing.T) {
	e := &stub{delay: time.Hour}
	f := finding(t, notes(), e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.Search(ctx, writeNote, SearchOptions{}); len(got) != 2 {
		t.Errorf("got %v, want both by words", got)
	}
	if !f.resume.IsZero() {
		t.Error("the embedder is blamed for a caller that went away")
	}
}

// Closing ends a request for vectors of tools.
func TestCloseWaitsForNoEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &stub{delay: time.Hour}
		f := NewFinder(notes(), FinderOptions{Embedder: e})
		f.Refresh()
		start := time.Now()
		f.Close()
		f.Refresh()
		synctest.Wait()
		if took := time.Since(start); took > 0 || len(e.asked) > 1 {
			t.Errorf("took %v and %d requests, want no time and one", took, len(e.asked))
		}
	})
}

func TestVectors(t *testing.T) {
	a, b := quantize([]float32{3, 4, 0}), quantize([]float32{6, 8, 0.01})
	if got := a.cosine(b); got < 0.99 || got > 1.01 {
		t.Errorf("same direction: got %v, want 1", got)
	}
	if got := a.cosine(quantize([]float32{-4, 3, 0})); got < -0.01 || got > 0.01 {
		t.Errorf("right angle: got %v, want 0", got)
	}
	if got := a.cosine(quantize([]float32{0, 0, 0})) + a.cosine(quantize([]float32{1})); got != 0 {
		t.Errorf("no direction, and other space: got %v, want 0", got)
	}
}

// Where there is no room for more vectors, other tools are found by their words, and removed tools make room.
func TestVectorsAreBounded(t *testing.T) {
	var log bytes.Buffer
	x, e := New(), &stub{words: []string{"a", "b", "c"}}
	for s := range 4 {
		var tools []Tool
		for i := range 10 {
			tools = append(tools, tool(fmt.Sprint("s", s), fmt.Sprintf("note_%d", i), "Read a note"))
		}
		x.Update(fmt.Sprint("s", s), tools)
	}
	f := NewFinder(x, FinderOptions{Embedder: e, Timeout: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.room = 33 * 4
	defer f.Close()
	for range 3 {
		if hits := f.Search(t.Context(), "s2 note", SearchOptions{}); len(hits) != 10 || !strings.HasPrefix(hits[0].ID, "s2") {
			t.Errorf("got %v, want ten tools, first those of s2", ids(hits))
		}
	}
	if n := len(e.take()); n != 33+1 || strings.Count(log.String(), "no room") != 1 {
		t.Errorf("got requests for %d texts, want 33 tools, the question, and one warning:\n%s", n, log.String())
	}
	x.Update("s0", nil)
	f.Search(t.Context(), "s2 note", SearchOptions{})
	if n := len(e.take()); n != 7 {
		t.Errorf("after ten tools were removed: got requests for %d texts, want the other 7", n)
	}
}
