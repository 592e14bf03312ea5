package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

type batchInitCmd struct {
	source
	remote
	File string `arg:"" optional:"" default:"cases.yaml" help:"The file to write."`
}

// maxStarters bounds the cases that init writes.
const maxStarters = 100

const starterHead = `# Questions for nexus batch run, one for each tool of the catalog. Replace each query by what your users would ask, and
# say what a good answer has. docs/batch.md explains every field and check.
`

func (c *batchInitCmd) Run(w *world) error {
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return err
	}
	defer done()
	if _, err := await(w.ctx, w, b, ""); err != nil {
		return err
	}
	raw, err := b.tools(w.ctx, "")
	if err != nil {
		return err
	}
	var listed struct {
		Tools []struct{ Name, Server, Description string }
	}
	if err := json.Unmarshal(raw, &listed); err != nil {
		return fmt.Errorf("reading the tools: %w", err)
	}
	if len(listed.Tools) == 0 {
		return &exitError{exitFailed, "no server offers a tool; see nexus health"}
	}
	var text bytes.Buffer
	text.WriteString(starterHead)
	for _, t := range listed.Tools[:min(len(listed.Tools), maxStarters)] {
		fmt.Fprintf(&text, "\n- id: %s\n  query: %s\n  tags: [%s]\n  expect:\n    tools: {includes: [%s]}\n    unmet: false\n",
			yamlText(t.Name), yamlText(sentence(t.Description, t.Name)), yamlText(t.Server), yamlText(t.Name))
	}
	if err := create(c.File, text.Bytes()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.stdout, "wrote %s with %d cases; run them with: nexus batch run %s --out results.jsonl\n",
		c.File, min(len(listed.Tools), maxStarters), quoteArg(c.File))
	return err
}

// create writes a file that must not exist.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &exitError{exitUsage, path + " exists already; name another file"}
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// sentence returns the first sentence of a description, or else a tool's name.
func sentence(description, name string) string {
	text := firstLine(description, 200)
	if before, _, ok := strings.Cut(text, ". "); ok {
		text = before + "."
	}
	if text == "" {
		return name
	}
	return text
}

// yamlText writes text as YAML that means just that: as a JSON string.
func yamlText(s string) string { return string(jsonrpc.StringID(s)) }
