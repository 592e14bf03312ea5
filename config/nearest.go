package config

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/nearest"
)

// suggest says which of the valid keys is meant by key, or which there are.
func suggest(key string, valid []string) string {
	if best := nearest.Of(key, valid, 1); len(best) > 0 {
		return fmt.Sprintf("did you mean %q?", best[0])
	}
	return "valid keys are " + orList(valid, "and")
}

// orList writes "a, b or c".
func orList(words []string, or string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + or + " " + words[last]
}
