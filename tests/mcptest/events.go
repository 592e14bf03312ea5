package mcptest

import (
	"io"

	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// Events hands the events of a stream that have data to take, in order, and returns what ended the stream.
func Events(r io.Reader, take func(name, data string)) error {
	events := sse.NewReader(r, 64<<20)
	defer events.Free()
	for {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if len(e.Data) > 0 {
			take(e.Name, string(e.Data))
		}
	}
}
