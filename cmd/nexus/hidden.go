package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// hiddenInput reads values that nobody may see: from the terminal without echo, else lines of standard input.
type hiddenInput struct {
	w     *world
	plain *prompt // reads standard input
}

// line reads the value of a name.
func (h *hiddenInput) line(ctx context.Context, name string) (value string, err error) {
	if f, ok := h.w.stdin.(*os.File); ok && isTerminal(f) {
		value, err = h.secret(ctx, int(f.Fd()), name)
	} else {
		if h.plain == nil {
			h.plain = &prompt{w: h.w}
		}
		value, err = h.plain.line(ctx, "")
	}
	if ctx.Err() == nil && (err != nil || value == "") {
		return "", &exitError{exitUsage, fmt.Sprintf("%s: no value was given; write it on a line of standard input, or as %[1]s=VALUE",
			firstLine(name, maxLabel))}
	}
	return value, err
}

// secret reads a line of the terminal without echo, which is on again when it returns.
func (h *hiddenInput) secret(ctx context.Context, terminal int, name string) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	fmt.Fprint(h.w.stderr, firstLine(name, maxLabel)+" (not shown): ")
	defer fmt.Fprintln(h.w.stderr)
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() { // cannot be interrupted; ends with a line or the program
		text, err := term.ReadPassword(terminal)
		read <- answer{text, err}
	}()
	select {
	case a := <-read:
		return string(a.text), a.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(terminal, before))
	}
}
