package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// handler decodes the arguments of a call strictly into T. Invalid arguments and errors of f become error
// results; those about arguments name the argument.
func handler[T any](f func(ctx context.Context, args T) (*mcp.CallToolResult, error)) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args T
		if err := decode(r.GetRawArguments(), &args); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		result, err := f(ctx, args)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return result, nil
	}
}

func decode(arguments, into any) error {
	if arguments == nil {
		return nil
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	mismatch := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fmt.Errorf("the argument %s is a %s, want %s",
			mismatch.Field, mismatch.Value, article(mismatch.Type.Kind().String()))
	case errors.As(err, &mismatch):
		return errors.New("the arguments are not a JSON object")
	}
	return fmt.Errorf("the arguments have an %s", strings.TrimPrefix(err.Error(), "json: "))
}

func article(kind string) string {
	if strings.HasPrefix(kind, "int") {
		return "an integer"
	}
	return "a " + kind
}

// required checks that a text argument is not blank.
func required(name, value string, limit int) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("the argument %s is missing or empty", name)
	}
	return bound(name, value, limit)
}

func bound(name, value string, limit int) error {
	if utf8.RuneCountInString(value) > limit {
		return fmt.Errorf("the argument %s is longer than %d characters", name, limit)
	}
	return nil
}
