package mcptest

import (
	"bytes"
	"fmt"
	"os"
)

// Ledger counts writes by key in a file, so that servers in several processes can share it and a killed one
// forgets nothing.
type Ledger struct{ Path string }

// Add enters a write. The line goes into the file in one piece.
func (l Ledger) Add(key string) error {
	f, err := os.OpenFile(l.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("entering a write: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(key + "\n"); err != nil {
		return fmt.Errorf("entering a write: %w", err)
	}
	return nil
}

// Writes returns how often each key was written.
func (l Ledger) Writes() (map[string]int, error) {
	raw, err := os.ReadFile(l.Path)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	writes := map[string]int{}
	for line := range bytes.Lines(raw) {
		writes[string(bytes.TrimSpace(line))]++
	}
	return writes, nil
}
