package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// ValueOf reads the raw result of a tool call. value is its structuredContent, else its text as JSON if the text is
// JSON, else its text as a JSON string. It is compact; numbers and member order are unchanged. text joins the text
// blocks by newlines. blocks are the other content blocks, unchanged. isError is the tool's isError. err reports an
// invalid result.
func ValueOf(
	result json.RawMessage,
) (value json.RawMessage, text string, blocks []json.RawMessage, isError bool, err error) {
	d := newDecoder(result)
	if d.PeekKind() != '{' {
		return nil, "", nil, false, errors.New("tool result is not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, "", nil, false, fmt.Errorf("reading tool result: %w", syntaxError(err))
	}
	var structured jsontext.Value
	var lines []string
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		switch name.String() {
		case "structuredContent":
			var v jsontext.Value
			if v, err = d.ReadValue(); err == nil && v.Kind() != 'n' {
				structured = v.Clone()
			}
		case "content":
			lines, blocks, err = readContent(d)
		case "isError":
			var v jsontext.Value
			v, err = d.ReadValue()
			isError = err == nil && v.Kind() == 't'
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return nil, "", nil, false, fmt.Errorf("reading tool result: %w", syntaxError(err))
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, "", nil, false, fmt.Errorf("reading tool result: %w", syntaxError(err))
	}
	text = strings.Join(lines, "\n")
	if structured != nil {
		if err := structured.Compact(); err != nil {
			return nil, "", nil, false, fmt.Errorf("reading structuredContent: %w", syntaxError(err))
		}
		return json.RawMessage(structured), text, blocks, isError, nil
	}
	return textValue(text), text, blocks, isError, nil
}

// readContent reads the list of content blocks. Any other value counts as an empty list. Blocks without a type are left
// out.
func readContent(d *jsontext.Decoder) (texts []string, blocks []json.RawMessage, err error) {
	if d.PeekKind() != '[' {
		return nil, nil, d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, err
	}
	for d.PeekKind() != ']' {
		block, err := d.ReadValue()
		if err != nil {
			return nil, nil, err
		}
		switch kind, text := textBlock(block); kind {
		case "":
		case "text":
			texts = append(texts, text)
		default:
			blocks = append(blocks, json.RawMessage(bytes.Clone(block)))
		}
	}
	_, err = d.ReadToken()
	return texts, blocks, err
}

// textBlock returns the members type and text of a block; empty if they are no strings.
func textBlock(block jsontext.Value) (kind, text string) {
	for name, value := range memberSeq(block) {
		if value.Kind() != '"' {
			continue
		}
		switch name {
		case "type":
			kind = unquote(value)
		case "text":
			text = unquote(value)
		}
	}
	return kind, text
}

func textValue(text string) json.RawMessage {
	v := jsontext.Value(strings.TrimSpace(text))
	if v.IsValid(jsontext.AllowDuplicateNames(true)) && v.Compact() == nil {
		return json.RawMessage(v)
	}
	return appendQuoted(nil, text)
}

// Cut limits a value to limit bytes: of its text if it is a string, else of its JSON. A longer value becomes a JSON
// string of the first bytes, up to a whole character, and Cut reports true.
func Cut(value json.RawMessage, limit int) (json.RawMessage, bool) {
	if len(value) <= limit {
		return value, false
	}
	text := string(value)
	if jsontext.Value(value).Kind() == '"' {
		if text = unquote(value); len(text) <= limit {
			return value, false
		}
	}
	return appendQuoted(nil, texts.Prefix(text, limit)), true
}
