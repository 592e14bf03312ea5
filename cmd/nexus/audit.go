package main

import (
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/audit"
)

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Check that no line of an audit log was changed, removed or inserted."`
}

type auditVerifyCmd struct {
	File string `arg:"" help:"The log, which is checked with its older files; or an older file, to check from there."`
}

// Run prints a summary. A broken line is an error.
func (c *auditVerifyCmd) Run(w *world) error {
	r, err := audit.Verify(c.File)
	if err != nil {
		return err
	}
	summary := fmt.Sprintf("%d lines in %d files are whole", r.Lines, r.Files)
	if r.Lines > 0 {
		summary += fmt.Sprintf(": seq %d to %d, %s to %s, SHA-256 of the last line %s",
			r.First.Seq, r.Last.Seq, r.First.Time, r.Last.Time, r.Hash)
	}
	if r.Lost > 0 {
		summary += fmt.Sprintf("; %d lines were not written: their seq are missing", r.Lost)
	}
	_, err = fmt.Fprintln(w.stdout, summary)
	return err
}
