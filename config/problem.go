package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one error in the configuration. Its text never contains a secret: it quotes values as written in the
// file, before variables are expanded, and does not quote secrets.
type Problem struct {
	File    string // "" = no file
	Line    int    // from 1; 0 = the file as a whole
	Column  int    // from 1, in characters
	Message string // one line
}

// String returns "file:line:column: message" without unknown parts.
func (p Problem) String() string {
	if p.File == "" {
		return p.Message
	}
	return position{p.File, p.Line, p.Column}.String() + ": " + p.Message
}

// Error lists the problems of the configuration, file by file. Commands exit with 2 on it.
type Error struct {
	Problems []Problem // never empty
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds how many problems are listed.
const maxProblems = 20

// problems collects problems. The zero value is ready to use.
type problems struct {
	list []Problem
	more int
}

func (p *problems) add(at position, format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	message := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	p.list = append(p.list, Problem{File: at.file, Line: at.line, Column: at.column, Message: message})
}

// problemAt returns an error with one problem.
func problemAt(at position, format string, args ...any) error {
	var p problems
	p.add(at, format, args...)
	return p.err()
}

// addError adds the problems of err, or err itself as one.
func (p *problems) addError(file string, err error) {
	var listed *Error
	if !errors.As(err, &listed) {
		p.add(position{file: file}, "%v", err)
		return
	}
	for _, q := range listed.Problems {
		p.add(position{q.File, q.Line, q.Column}, "%s", q.Message)
	}
}

// err returns the problems as an *Error, nil if there are none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	list := slices.Clone(p.list)
	order := map[string]int{}
	for i, q := range list {
		if _, ok := order[q.File]; !ok {
			order[q.File] = i
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if p.more > 0 {
		list = append(list, Problem{Message: fmt.Sprintf("and %d more", p.more)})
	}
	return &Error{Problems: list}
}

// position is a place in a file.
type position struct {
	file         string
	line, column int
}

func (p position) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}
