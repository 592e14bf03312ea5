package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/router"
)

// mostTries bounds how often a file is read again that other programs change.
const mostTries = 20

// editFlags are the flags of commands that change files of people.
type editFlags struct {
	Yes    bool `help:"Do not ask."`
	DryRun bool `help:"Show the difference only."`
}

// edit is a change of files that is shown, asked about and made.
type edit struct {
	editFlags
	client *clients.Client        // whose file is among them; nil = none
	plan   func() ([]step, error) // reads the files; no steps mean that there is nothing to do
}

// step is a change of one file.
type step struct {
	*change.Change
	backup string
	values bool // it is a file of NAME=value whose values are not shown

	again func() (*change.Change, error) // makes the change anew if the file was changed meanwhile; nil = ask again
}

// additions returns the steps that add servers.
func additions(a *config.Addition) (steps []step) {
	for i, f := range a.Files {
		steps = append(steps, step{Change: f, values: i < len(a.Files)-1})
	}
	return steps
}

// credentials returns those in the servers of a client's file or of servers.yaml, before and after.
func (s step) credentials(client *clients.Client) (all []string) {
	for _, text := range [][]byte{s.Before, s.After} {
		if client != nil {
			if servers, err := client.Servers(text); err == nil {
				text, _, _ = client.Standard(servers, "")
			}
		}
		all = append(all, config.Credentials(s.File, text)...)
	}
	return all
}

// referring matches a line of YAML whose value is a variable, which is no credential.
var referring = pattern.New(`^ *[\w-]+: (?:(?i:bearer|basic|token) )?\$\{\w+\}$`)

// run reports whether files were changed.
func (e *edit) run(w *world) (bool, error) {
	for try := 1; ; try++ {
		steps, err := e.plan()
		if err != nil || len(steps) == 0 {
			return false, err
		}
		var secrets []string
		for _, s := range steps {
			secrets = append(secrets, s.credentials(e.client)...)
		}
		mask := redact.NewMasker(secrets)
		for _, s := range steps {
			fmt.Fprintf(w.stdout, "%s:\n%s", s.File, s.Diff(func(line string) string {
				name, _, found := strings.Cut(line, "=")
				switch {
				case found && s.values:
					return name + "=" + redact.Mark
				case referring().MatchString(line):
					return mask.Known(line)
				}
				return mask.Text(line)
			}))
		}
		if e.DryRun {
			return false, nil
		}
		if err := e.confirm(w); err != nil {
			return false, err
		}
		err = apply(w, steps)
		if err == nil || try == mostTries || !errors.Is(err, change.ErrMeanwhile) {
			return err == nil, err
		}
		fmt.Fprintln(w.stderr, "nexus: another program has just changed one of these files; the difference is now:")
	}
}

func writable(steps []step) error {
	for _, s := range steps {
		if err := s.Writable(); err != nil {
			return err
		}
	}
	return nil
}

func apply(w *world, steps []step) error {
	if err := writable(steps); err != nil {
		return err
	}
	for _, s := range steps {
		err := s.Apply(w.ctx, s.backup)
		for try := 1; s.again != nil && try < mostTries && errors.Is(err, change.ErrMeanwhile); try++ {
			if s.Change, err = s.again(); err == nil && s.Change != nil {
				err = s.Apply(w.ctx, s.backup)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerable returns an error if a change has to be asked about and nobody can be asked.
func (f editFlags) answerable(w *world) error {
	if f.Yes || f.DryRun || w.asks {
		return nil
	}
	return &exitError{exitUsage, "nothing was changed: there is no terminal to ask on; give --yes"}
}

// confirm asks whether to make a change that was shown.
func (e *edit) confirm(w *world) error {
	if err := e.answerable(w); err != nil || e.Yes {
		return err
	}
	err := (&prompt{w: w}).confirm(w.ctx, "Make this change? ")
	if errors.Is(err, router.ErrDeclined) {
		return errors.New("nothing was changed")
	}
	return err
}
