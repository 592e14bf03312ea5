package edge_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Where it cannot be read which sessions have ended none is revived, and the log says so; else it says nothing.
func TestRevivalTellsWhyNot(t *testing.T) {
	for _, readable := range []bool{true, false} {
		folder := t.TempDir()
		h := newWire(t, edge.Options{}).keep(folder).open("2025-11-25")
		if !readable {
			for _, start := range []time.Time{time.Now().Add(-time.Minute), time.Now()} {
				if err := os.MkdirAll(filepath.Join(folder, "ended", start.UTC().Format("2006-01-02T15")), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		var log mcptest.Log
		after := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).keep(folder)
		status, _, body := after.post(request("1", "seen", ""), h)
		if revived := status == 200; revived != readable || status != 200 && status != 404 {
			t.Errorf("readable %v: got %d %s, want it to be revived: %v", readable, status, body, readable)
		}
		if said := log.Has("level=WARN"); said == readable {
			t.Errorf("readable %v: the log warns: %v", readable, said)
		}
	}
}
