package config

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/suggest"
)

// didYouMean names the valid key that is most like key, or all valid keys.
func didYouMean(key string, valid []string) string {
	if best := suggest.Of(key, valid, 1); len(best) > 0 {
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
