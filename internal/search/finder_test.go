package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stub embeds by the words that texts contain, one dimension a word, and keeps what it was asked.
type stub struct {
	words []string
	asked []string
	err   error
	delay time.Duration
}

func (s *stub) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	s.asked = append(s.asked, texts...)
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
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

func (s *stub) take() []string {
	asked := s.asked
	s.asked = nil
	return asked
}

// notes are two tools of which the question's words prefer the first and its meaning the second.
func notes() *Index {
	x := New(Options{})
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
	e := &stub{words: []string{"into", "append"}}
	f := NewFinder(notes(), FinderOptions{Embedder: synonyms{e}})
	if got := ids(f.Search(t.Context(), writeNote, SearchOptions{})); got[0] != "n::take_note" {
		t.Errorf("by meaning: got %v, want n::take_note first", got)
	}
	if got := ids(f.Search(t.Context(), writeNote, SearchOptions{Limit: 1})); !slices.Equal(got, []string{"n::take_note"}) {
		t.Errorf("the best alone: got %v", got)
	}
	if got := f.Search(t.Context(), "xyzzy", SearchOptions{}); len(got) != 0 {
		t.Errorf("unknown word: got %v", got)
	}
}

// synonyms tells its embedder that to append is to write into.
type synonyms struct{ *stub }

func (s synonyms) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var same []string
	for _, text := range texts {
		same = append(same, strings.ReplaceAll(text, "into", "append"))
	}
	return s.stub.Embed(ctx, same)
}

func TestOnlyWhatIsNewIsEmbedded(t *testing.T) {
	x, e := notes(), &stub{words: []string{"note"}}
	f := NewFinder(x, FinderOptions{Embedder: e})
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 3 {
		t.Errorf("first question: got %q, want it and two tools", got)
	}
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 0 {
		t.Errorf("the same question: got %q, want nothing", got)
	}
	x.Update("n", []Tool{tool("n", "read_note", "Read a note"), tool("n", "take_note", "Write into a note"), tool("n", "list_notes", "List notes")})
	f.Search(t.Context(), writeNote, SearchOptions{})
	if got := e.take(); len(got) != 2 || !strings.Contains(got[0]+got[1], "Write into") || !strings.Contains(got[0]+got[1], "list_notes") {
		t.Errorf("after an update: got %q, want the new and the changed tool", got)
	}
	f.Search(t.Context(), "Read a note. Then write into the notes.", SearchOptions{})
	if got := e.take(); len(got) != 3 {
		t.Errorf("a question of two sentences: got %q, want it and both", got)
	}
}

func TestManyToolsAreEmbeddedInBatches(t *testing.T) {
	x, e := New(Options{}), &stub{words: []string{"7"}}
	var tools []Tool
	for i := range 200 {
		tools = append(tools, tool("n", fmt.Sprintf("note_%d", i), "Read a note"))
	}
	x.Update("n", tools)
	calls := &counted{Embedder: e}
	hits := NewFinder(x, FinderOptions{Embedder: calls}).Search(t.Context(), "note", SearchOptions{Limit: 5})
	if len(e.asked) != rerankDepth+1 || calls.n != 2 || len(hits) != 5 {
		t.Errorf("got %d texts in %d requests and %d hits, want %d, 2 and 5", len(e.asked), calls.n, len(hits), rerankDepth+1)
	}
}

type counted struct {
	Embedder
	n int
}

func (c *counted) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.n++
	return c.Embedder.Embed(ctx, texts)
}

func TestFailingEmbedderIsLeftAlone(t *testing.T) {
	for name, e := range map[string]*stub{
		"error":    {err: errors.New("out of order")},
		"too slow": {delay: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := NewFinder(notes(), FinderOptions{Embedder: e, Timeout: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
				}
				if n := len(e.take()); n != 3 {
					t.Errorf("asked for %d texts, want 3 of one attempt", n)
				}
				time.Sleep(embedPause)
				search()
				if n := len(e.take()); n != 3 {
					t.Errorf("after the pause: asked for %d texts, want 3", n)
				}
				if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "by words alone") {
					t.Errorf("got %d warnings, want 1:\n%s", n, log.String())
				}
				time.Sleep(embedPause)
				e.err, e.delay, e.words = nil, 0, []string{"write", "take_note"}
				f.Search(t.Context(), writeNote, SearchOptions{})
				if !strings.Contains(log.String(), "by meaning again") {
					t.Errorf("the recovery is not logged:\n%s", log.String())
				}
			})
		})
	}
}

func TestCancelledSearchIsNoFailure(t *testing.T) {
	e := &stub{delay: time.Hour}
	f := NewFinder(notes(), FinderOptions{Embedder: e})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.Search(ctx, writeNote, SearchOptions{}); len(got) != 2 {
		t.Errorf("got %v, want both by words", got)
	}
	if !f.available() {
		t.Error("the embedder is blamed for a caller that went away")
	}
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

func TestVectorsKeptAreBounded(t *testing.T) {
	f := NewFinder(New(Options{}), FinderOptions{})
	v := vector{parts: make([]int8, 8192)}
	n := maxVectorBytes / len(v.parts)
	for i := range n {
		f.keep(keyOf(fmt.Sprint(i)), v)
	}
	f.vectors.Get(keyOf("0"))
	f.keep(keyOf("one more"), v)
	if _, ok := f.vectors.Get(keyOf("0")); !ok {
		t.Error("a vector used lately is forgotten")
	}
	if _, ok := f.vectors.Get(keyOf("1")); ok || f.vectors.Len() != n {
		t.Errorf("got %d vectors, want %d and the oldest forgotten", f.vectors.Len(), n)
	}
	f.keep(keyOf("of another model"), vector{parts: make([]int8, 4)})
	if f.vectors.Len() != 1 {
		t.Errorf("another model: got %d vectors, want 1", f.vectors.Len())
	}
}
