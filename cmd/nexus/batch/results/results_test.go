package results_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// cases reads the ids of all lines.
func cases(t *testing.T, path string) (ids []string, torn bool) {
	t.Helper()
	torn, err := results.Read(path, func(l *results.Line, _ results.Place) error {
		ids = append(ids, l.Case)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids, torn
}

func TestResumeCutsTornLine(t *testing.T) {
	const whole = `{"case":"a","repeat":1,"outcome":"passed"}` + "\n"
	for torn, want := range map[string]int{
		"":                              1,
		`{"case":"b"`:                   1,
		`{"case":"b"}`:                  1, // its end of line may be what is missing
		strings.Repeat("x", 200_000):    1,
		`{"case":"b"}` + "\n" + `{"cas`: 2,
	} {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		if err := os.WriteFile(path, []byte(whole+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if ids, isTorn := cases(t, path); len(ids) != want || isTorn != (torn != "") {
			t.Errorf("%.20q: got %q, torn %t", torn, ids, isTorn)
		}
		w, err := results.Resume(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(&results.Line{Case: "z", Repeat: 1}), w.Close()); err != nil {
			t.Fatal(err)
		}
		if ids, isTorn := cases(t, path); len(ids) != want+1 || ids[want] != "z" || isTorn {
			t.Errorf("%.20q: got %q, torn %t, want %d lines and z", torn, ids, isTorn, want)
		}
	}
}

func TestConcurrentWritesStayWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := results.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 50 {
				if err := w.Write(&results.Line{Case: strings.Repeat("x", 5000), Repeat: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if ids, torn := cases(t, path); len(ids) != 400 || torn {
		t.Errorf("got %d lines, torn %t, want 400", len(ids), torn)
	}
	if _, err := results.Create(path); !errors.Is(err, results.ErrExists) {
		t.Errorf("creating it again: got %v, want ErrExists", err)
	}
}

func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := results.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = results.Resume(path)
	if runtime.GOOS != "windows" && (err == nil || !strings.Contains(err.Error(), "another batch is writing it")) {
		t.Errorf("a second writer: got %v, want it refused", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := results.Resume(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	w, err := results.Create("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = w.Write(&results.Line{Case: "a"})
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("got %v, want no space left", err)
	}
	if again := w.Write(&results.Line{Case: "b"}); again == nil {
		t.Error("after a failure: got no error")
	}
}

func TestBrokenLineIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(path, []byte("{\"case\":\"a\"}\n{]\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := results.Read(path, func(*results.Line, results.Place) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), path+":2: is damaged: ") || !strings.HasSuffix(err.Error(), "; remove the line") {
		t.Errorf("got %v, want the second line named", err)
	}
}
