package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

type batchInitCmd struct {
	source
	remote
	File string `arg:"" optional:"" default:"cases.yaml" help:"The YAML file to write."`
}

// maxStarters bounds the cases of init.
const maxStarters = 100

const starterHead = `# Questions for nexus batch run, one for each tool of the catalog. Replace each query by what your users would ask, and
# say what a good answer has. docs/batch.md explains every field and check.
`

func (c *batchInitCmd) Run(w *world) error {
	if ext := filepath.Ext(c.File); ext != ".yaml" && ext != ".yml" {
		return &exitError{exitUsage, c.File + " is not the name of a YAML file; use the extension .yaml"}
	}
	var text bytes.Buffer
	n, err := c.starters(w, &text)
	if err != nil {
		return err
	}
	if err := create(c.File, text.Bytes()); err != nil {
		return err
	}
	run := "nexus batch run " + quoteArg(c.File) + " --out results.jsonl"
	for _, path := range c.Config {
		run += " --config " + quoteArg(path)
	}
	if c.Demo {
		run += " --demo"
	}
	_, err = fmt.Fprintf(w.stdout, "wrote %s with %d cases; run them with: %s\n", c.File, n, run)
	return err
}

// starters writes one case per tool and returns their number.
func (c *batchInitCmd) starters(w *world, text *bytes.Buffer) (n int, err error) {
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return 0, err
	}
	defer done()
	if _, err := await(w.ctx, w, b, ""); err != nil {
		return 0, err
	}
	raw, err := b.tools(w.ctx, "")
	if err != nil {
		return 0, err
	}
	var listed struct {
		Tools []struct{ Name, Server, Description string }
	}
	if err := json.Unmarshal(raw, &listed); err != nil {
		return 0, fmt.Errorf("reading the tools: %w", err)
	}
	if len(listed.Tools) == 0 {
		return 0, &exitError{exitFailed, "no server offers a tool; see nexus health"}
	}
	text.WriteString(starterHead)
	for _, t := range listed.Tools[:min(len(listed.Tools), maxStarters)] {
		fmt.Fprintf(text, "\n- id: %s\n  query: %s\n  tags: [%s]\n  expect:\n    tools: {includes: [%s]}\n    unmet: false\n",
			yamlText(t.Name), yamlText(sentence(t.Description, t.Name)), yamlText(t.Server), yamlText(t.Name))
	}
	return min(len(listed.Tools), maxStarters), nil
}

// create writes a new file. It fails if the file exists.
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

// yamlText writes text as a JSON string, which every YAML reader reads unchanged.
func yamlText(s string) string { return string(jsonrpc.StringID(s)) }
