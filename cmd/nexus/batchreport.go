package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	reports "github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
)

type batchReportCmd struct {
	Results  string   `arg:"" help:"The results of nexus batch run."`
	HTML     string   `name:"html" help:"Write a page." placeholder:"FILE"`
	JUnit    string   `name:"junit" help:"Write JUnit XML, for continuous integration." placeholder:"FILE"`
	Markdown string   `help:"Write Markdown, for a pull request." placeholder:"FILE"`
	JSON     bool     `name:"json" help:"Print the figures as JSON."`
	FailIf   []string `help:"Exit with 1 if this holds, such as 'pass_rate<0.9' or 'p95>2'; may be repeated." placeholder:"GATE" sep:"none"`
}

func (c *batchReportCmd) Run(w *world) error {
	gates, err := parseGates(c.FailIf, false)
	if err != nil {
		return err
	}
	b, err := loadResults(w, c.Results)
	if err != nil {
		return err
	}
	f, err := b.Figures()
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{c.HTML, func(out io.Writer) error { return b.WriteHTML(out, f) }},
		{c.JUnit, b.WriteJUnit},
		{c.Markdown, f.WriteMarkdown},
	} {
		if err := writeFile(file.path, file.write); err != nil {
			return err
		}
	}
	if err := printFigures(w, c.JSON, f); err != nil {
		return err
	}
	return failedGates(reports.Judge(gates, nil, b.Metrics()))
}

type batchCompareCmd struct {
	A      string   `arg:"" help:"The baseline results."`
	B      string   `arg:"" help:"The results to judge."`
	HTML   string   `name:"html" help:"Write a page." placeholder:"FILE"`
	JSON   bool     `name:"json" help:"Print the figures as JSON."`
	FailIf []string `help:"Exit with 1 if this holds, such as 'flipped_to_fail>0' or 'p95>1.2x'; x is relative to A; may be repeated." placeholder:"GATE" sep:"none"`
}

func (c *batchCompareCmd) Run(w *world) error {
	gates, err := parseGates(c.FailIf, true)
	if err != nil {
		return err
	}
	var a, b *reports.Batch
	var both errgroup.Group
	both.Go(func() (err error) { a, err = loadResults(w, c.A); return err })
	both.Go(func() (err error) { b, err = loadResults(w, c.B); return err })
	if err := both.Wait(); err != nil {
		return err
	}
	f, err := reports.Compare(a, b, gates)
	if err != nil {
		return err
	}
	if f.Pairs == 0 {
		return &exitError{exitUsage, fmt.Sprintf("%s and %s have no case in common", c.A, c.B)}
	}
	if err := writeFile(c.HTML, f.WriteHTML); err != nil {
		return err
	}
	if err := printFigures(w, c.JSON, f); err != nil {
		return err
	}
	return failedGates(f.Gates)
}

func loadResults(w *world, path string) (*reports.Batch, error) {
	b, err := reports.Load(path)
	if err == nil && b.Torn {
		fmt.Fprintf(w.stderr, "nexus: the last line of %s is incomplete and was ignored; nexus batch run --resume completes it\n", path)
	}
	return b, err
}

// printFigures prints figures as JSON or as a summary.
func printFigures(w *world, asJSON bool, f interface{ WriteText(io.Writer) error }) error {
	if asJSON {
		return printJSON(w, f)
	}
	return f.WriteText(w.stdout)
}

func parseGates(texts []string, compared bool) (gates []reports.Gate, err error) {
	for _, text := range texts {
		g, err := reports.ParseGate(text, compared)
		if err != nil {
			return nil, &exitError{exitUsage, err.Error()}
		}
		gates = append(gates, g)
	}
	return gates, nil
}

func failedGates(failed []string) error {
	if len(failed) == 0 {
		return nil
	}
	return &exitError{exitFailed, "gate failed: " + strings.Join(failed, "\ngate failed: ")}
}

// writeFile writes a file that only its owner can read, unless it exists; without a path it does nothing.
func writeFile(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	out := bufio.NewWriterSize(f, 64<<10)
	if err := errors.Join(write(out), out.Flush(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
