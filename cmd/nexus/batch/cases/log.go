package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLogLine bounds a line of a log, in bytes. Longer lines are skipped.
const maxLogLine = 4 << 20

// Logged is a question in a log.
type Logged struct {
	ID        string          `json:"id"`
	Query     string          `json:"query"`
	Context   json.RawMessage `json:"context,omitempty"`
	Servers   []string        `json:"servers,omitempty"`
	Plan      json.RawMessage `json:"plan,omitempty"`
	MaxRounds int             `json:"max_rounds,omitempty"`
}

// FromLog returns the distinct questions of clients in a router's log at level trace, in either log format.
func FromLog(log io.Reader) (questions []Logged, err error) {
	in := bufio.NewReaderSize(log, maxLogLine)
	seen := map[string]bool{}
	for {
		line, err := in.ReadSlice('\n')
		if q, ok := logged(line); ok {
			if text, failed := json.Marshal(q); failed == nil && !seen[string(text)] {
				seen[string(text)] = true
				q.ID = fmt.Sprintf("log-%d", len(questions)+1)
				questions = append(questions, q)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return questions, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("reading the log: %w", err)
		}
	}
}

// logged reads the question in a line of a log.
func logged(line []byte) (q Logged, ok bool) {
	if !bytes.Contains(line, []byte("process_query")) || !bytes.Contains(line, []byte("Message received")) {
		return q, false
	}
	var call struct {
		Method string `json:"method"`
		Params struct {
			Name      string `json:"name"`
			Arguments Logged `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal([]byte(message(line)), &call) != nil {
		return q, false
	}
	q = call.Params.Arguments
	q.ID = ""
	return q, call.Method == "tools/call" && call.Params.Name == "process_query" && q.Query != ""
}

// message returns the attribute of that name.
func message(line []byte) string {
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(line, &object) == nil {
		return object.Message
	}
	_, after, _ := strings.Cut(string(line), " message=")
	quoted, err := strconv.QuotedPrefix(after)
	if err != nil {
		return ""
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return ""
	}
	return text
}
