package usage

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/keep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, folder string) *Store {
	s := Open(folder, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	return s
}

const parcel = "Where is my parcel?"

func TestLiked(t *testing.T) {
	s := open(t, "")
	s.Learn("ann", parcel, []string{"post__track"})
	once := s.Liked("ann", "Has my parcel come?")["post__track"]
	if once <= 0 || once >= 1 {
		t.Errorf("a similar question: got %v, want between 0 and 1", once)
	}
	s.Learn("ann", "Track the parcel", []string{"post__track"})
	if twice := s.Liked("ann", "Has my parcel come?")["post__track"]; twice <= once || twice >= 1 {
		t.Errorf("after a second one: got %v, want more than %v", twice, once)
	}
	if other := s.Liked("ann", "Has my unusual parcel not come?")["post__track"]; other >= s.Liked("ann", parcel)["post__track"] {
		t.Errorf("a less similar question: got %v, want less than that of the same", other)
	}
	s.Learn("ann", "Send a parcel", []string{"post__send"})
	if got := s.Liked("ann", "parcel"); got["post__track"] <= got["post__send"] || got["post__send"] <= 0 {
		t.Errorf("a word that led to two tools: got %v, want both, first the one of more questions", got)
	}
	for name, got := range map[string]map[string]float64{
		"another question": s.Liked("ann", "What is the weather?"),
		"another caller":   s.Liked("bob", parcel),
		"no words":         s.Liked("ann", "the is my"),
		"a nil store":      (*Store)(nil).Liked("ann", parcel),
	} {
		if len(got) != 0 {
			t.Errorf("%s: got %v, want nothing", name, got)
		}
	}
}

// What was learned outlives the process; neither questions nor callers can be read in it.
func TestFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	s := open(t, folder)
	s.Learn("ann@example.org", "Is the parcel on the zeppelin late?", []string{"post__track"})
	want := s.Liked("ann@example.org", "zeppelin")
	s.Close()
	raw, err := os.ReadFile(filepath.Join(folder, "usage.json"))
	if err != nil || !strings.Contains(string(raw), "post__track") {
		t.Fatalf("got %s, %v, want the tool", raw, err)
	}
	for _, secret := range []string{"example", "zeppelin", "parcel"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%q is in the file", secret)
		}
	}
	if got := open(t, folder).Liked("ann@example.org", "zeppelin"); len(want) != 1 || got["post__track"] != want["post__track"] {
		t.Errorf("after a restart: got %v, want %v", got, want)
	}
}

// Stores that share a file take over what the others have learned.
func TestSharedFile(t *testing.T) {
	folder := t.TempDir()
	first := open(t, folder)
	first.Learn("ann", "walrus", []string{"a__walrus"})
	first.Close()
	second, third := open(t, folder), open(t, folder)
	second.Learn("ann", "zebra", []string{"a__zebra"})
	third.Learn("ann", "tiger", []string{"a__tiger"})
	second.Close()
	third.Close()
	all := open(t, folder)
	for _, word := range []string{"walrus", "zebra", "tiger"} {
		if got := all.Liked("ann", word); got["a__"+word] == 0 {
			t.Errorf("%s: got %v", word, got)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON":   `{"version":1`,
		"version":   `{"version":7,"key":"","callers":{}}`,
		"short key": `{"version":1,"key":"AAAA","callers":{}}`,
		"too long":  strings.Repeat(" ", keep.MaxFile+1),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			file := filepath.Join(folder, "usage.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s := Open(folder, slog.New(slog.NewTextHandler(&log, nil)))
			s.Learn("ann", parcel, []string{"post__track"})
			s.Close()
			if strings.Count(log.String(), "learned anew") != 1 {
				t.Errorf("got the log %q, want one warning", log.String())
			}
			if got := open(t, folder).Liked("ann", parcel); len(got) != 1 {
				t.Errorf("got %v, want what was learned after it", got)
			}
		})
	}
}

func TestHostileFile(t *testing.T) {
	folder := t.TempDir()
	key := strings.Repeat("A", 43) + "="
	content := fmt.Sprintf(`{"version":1,"key":%q,"callers":{"1":null,"2":{"tools":{"a__b":{"3":[1e300,1],"4":[-1,0],"5":[1,99999999]},"c__d":null}}}}`, key)
	if err := os.WriteFile(filepath.Join(folder, "usage.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, folder)
	for _, c := range s.callers {
		for tool := range c.tools {
			if w := c.weight(tool, today()); w != 0 {
				t.Errorf("%s has weight %v of marks out of range", tool, w)
			}
		}
	}
}

// What was learned fades, and is gone in time.
func TestDecay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Open("", slog.New(slog.DiscardHandler))
		defer s.Close()
		s.Learn("ann", parcel, []string{"post__track"})
		before := s.Liked("ann", parcel)["post__track"]
		time.Sleep(halfLife * 24 * time.Hour)
		if got := s.Liked("ann", parcel)["post__track"]; got <= 0 || got >= before {
			t.Errorf("after %v days: got %v, want less than %v", halfLife, got, before)
		}
		time.Sleep(5 * halfLife * 24 * time.Hour)
		if got := s.Liked("ann", parcel); len(got) != 0 {
			t.Errorf("long after: got %v, want nothing", got)
		}
	})
}

// word returns the i-th of many words.
func word(i int) string { return fmt.Sprintf("k%c%cq", 'a'+i/26, 'a'+i%26) }

func TestBounds(t *testing.T) {
	s := open(t, "")
	for i := range maxTools + 20 {
		for range min(i, 3) {
			s.Learn("ann", "alpha "+word(i), []string{fmt.Sprint("s__t", i)})
		}
	}
	for i := range maxTerms + 20 {
		s.Learn("ann", "other "+word(i), []string{"s__t50"})
	}
	s.Learn("ann", "alpha", make([]string, maxAnswered+1))
	s.Learn("ann", "alpha", []string{strings.Repeat("x", maxName+1)})
	c := s.callers[s.hash("caller ", "ann")]
	if len(c.tools) != maxTools || len(c.tools["s__t50"]) != maxTerms {
		t.Errorf("got %d tools and %d terms of one, want %d and %d", len(c.tools), len(c.tools["s__t50"]), maxTools, maxTerms)
	}
	if got := s.Liked("ann", word(maxTools+19)); len(got) != 1 {
		t.Errorf("the last tool: got %v", got)
	}
	for i := range maxCallers + 5 {
		s.Learn(fmt.Sprint("caller ", i), parcel, []string{"post__track"})
	}
	if got := s.Liked(fmt.Sprint("caller ", maxCallers+4), parcel); len(s.callers) != maxCallers || len(got) != 1 {
		t.Errorf("got %d callers, and %v of the last, want %d", len(s.callers), got, maxCallers)
	}
}

func TestBoundsOfTheFile(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	for i := range maxCallers {
		for j := range maxTools {
			s.Learn(fmt.Sprint(i), "alpha", []string{fmt.Sprint("s__", j, strings.Repeat("x", maxName-10))})
		}
	}
	s.Close()
	info, err := os.Stat(filepath.Join(folder, "usage.json"))
	if err != nil || info.Size() > keep.MaxFile {
		t.Errorf("got %v, %v, want a file of at most %d bytes", info, err, keep.MaxFile)
	}
}
