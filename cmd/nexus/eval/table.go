package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteTable writes a summary as lines of name and figure, in the order of its JSON.
func WriteTable(w io.Writer, summary any) error {
	raw, err := json.Marshal(summary)
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		var value json.Number
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		text := value.String()
		if f, err := value.Float64(); err == nil && f != float64(int64(f)) {
			text = fmt.Sprintf("%.3f", f)
		}
		if _, err := fmt.Fprintf(w, "%-20v %s\n", name, text); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
	}
	return nil
}
