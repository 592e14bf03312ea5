package keep_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/keep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type words map[string]bool

// store learns words.
type store struct {
	keep.File[words]
	mu    sync.Mutex
	known words
	log   strings.Builder
}

func open(t *testing.T, folder string) *store {
	s := &store{known: words{}}
	s.File = keep.File[words]{Folder: folder, Name: "words.json", What: "what was heard", Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Check: func(w words) error {
			if w["forbidden"] {
				return errors.New("it has a forbidden word")
			}
			return nil
		},
		Merge: s.merge}
	if doc := s.Open(); doc != nil {
		s.known = *doc
	}
	t.Cleanup(s.Close)
	return s
}

func (s *store) merge(others *words) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if others != nil {
		for word := range *others {
			s.known[word] = true
		}
	}
	return json.Marshal(s.known)
}

func (s *store) learn(word string) {
	s.mu.Lock()
	s.known[word] = true
	s.mu.Unlock()
	s.Changed()
}

func content(folder string) string {
	raw, _ := os.ReadFile(filepath.Join(folder, "words.json"))
	return string(raw)
}

// What changes is written some time later, together, with what others have written meanwhile, and at the latest by Close.
func TestFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		one, other := open(t, folder), open(t, folder)
		one.learn("a")
		one.learn("b")
		synctest.Wait()
		if got := content(folder); got != "" {
			t.Errorf("at once: got %s, want nothing", got)
		}
		time.Sleep(time.Minute)
		if got := content(folder); got != `{"a":true,"b":true}` {
			t.Errorf("a minute later: got %s, want both words", got)
		}
		other.learn("c")
		other.Close()
		if got := content(folder); got != `{"a":true,"b":true,"c":true}` {
			t.Errorf("after the other was closed: got %s, want the words of both", got)
		}
		one.Close()
		one.Close()
		one.learn("d")
		time.Sleep(time.Minute)
		if got := open(t, folder).known; len(got) != 3 {
			t.Errorf("opened anew: got %v, want what was learned before Close", got)
		}
	})
}

// Without a change nothing is written.
func TestFile_Unchanged(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	open(t, folder).Close()
	if _, err := os.Stat(folder); err == nil {
		t.Error("got a folder, want none")
	}
	s := open(t, "")
	s.learn("a")
	s.Close()
	if _, err := os.Stat("words.json"); err == nil {
		t.Error("got a file without a folder")
	}
}

func TestFile_Damaged(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":  `{"a":`,
		"refused":  `{"forbidden":true}`,
		"too long": strings.Repeat(" ", keep.MaxFile+1),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "words.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, folder)
			s.learn("a")
			s.Close()
			if strings.Count(s.log.String(), "what was heard cannot be read and is learned anew") != 1 {
				t.Errorf("got the log %q, want one warning", s.log.String())
			}
			if got := content(folder); got != `{"a":true}` {
				t.Errorf("got %s, want what was learned since", got)
			}
		})
	}
}

// What cannot be written is told and not lost to the store.
func TestFile_NotWritten(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(taken, "state"))
	s.learn("a")
	s.Close()
	if log := s.log.String(); !strings.Contains(log, "what was heard cannot be kept") || !s.known["a"] {
		t.Errorf("got the log %q and %v, want a warning", log, s.known)
	}
}
