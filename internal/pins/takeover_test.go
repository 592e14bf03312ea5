package pins_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// What a folder has of a server is shared if nothing of the server is; a damaged folder approves nothing.
func TestTakeOver(t *testing.T) {
	present := tool("x", `"description":"now",`+object)
	for name, c := range map[string]struct {
		folder, shared  string // the description of x that is approved there; empty = nothing is known
		damaged, lost   bool
		refused, logged string
	}{
		"changed since it was approved": {folder: "before", refused: "has changed", logged: "takes over"},
		"as approved":                   {folder: "now", logged: "takes over"},
		"the cluster was first":         {folder: "before", shared: "now"},
		"nothing":                       {},
		"damaged":                       {folder: "now", damaged: true, refused: "was added", logged: "are damaged"},
		"damaged, known to the cluster": {folder: "before", shared: "now", damaged: true, logged: "are damaged"},
		"not to be reached":             {folder: "before", lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder, state := t.TempDir(), &store{Memory: shared.NewMemory()}
			t.Cleanup(state.Close)
			sees := func(s *pins.Store, description string) {
				if description != "" {
					s.Check("hr", []pins.Tool{tool("x", `"description":"`+description+`",`+object)}, true)
				}
				s.Close()
			}
			sees(pins.Open(pins.Options{Folder: folder, Mode: pins.Enforce, Logger: slog.New(slog.DiscardHandler)}), c.folder)
			one, _ := replica(t, state, nil)
			sees(one, c.shared)
			if c.damaged {
				if err := os.WriteFile(filepath.Join(folder, "pins.json"), []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			to, err := shared.OpenMirror(t.Context(), state, pins.SharedPrefix)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(to.Close)
			state.lost.Store(c.lost)
			l := &mcptest.Log{}
			err = pins.TakeOver(t.Context(), folder, to, []string{"hr"}, slog.New(slog.NewTextHandler(l, nil)))
			if c.lost {
				if !errors.Is(err, shared.ErrUnreachable) {
					t.Errorf("got %v, want that the shared state cannot be reached", err)
				}
				return
			}
			if err != nil || len(l.Lines("takes over")) > 1 || !strings.Contains(l.String(), c.logged) ||
				c.logged == "" && l.String() != "" {
				t.Errorf("got %v and the log %q, want %q", err, l.String(), c.logged)
			}
			s, _ := replica(t, state, nil)
			s.Check("hr", []pins.Tool{present}, true)
			got := s.Refusal("hr", "x", "")
			if c.refused == "" && got != "" || !strings.Contains(got, c.refused) {
				t.Errorf("got refusal %q, want %q", got, c.refused)
			}
		})
	}
}
