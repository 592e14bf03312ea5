package synth

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// withoutThoughts removes what a model wrote between think tags. Thoughts that never end take the rest with them;
// an end without a beginning, as some chat templates leave it, takes what is before it.
func withoutThoughts(text string) string {
	if end := strings.Index(text, "</think>"); end >= 0 && !strings.Contains(text[:end], "<think>") {
		text = text[end+len("</think>"):]
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<think>")
		out.WriteString(before)
		if !found {
			return strings.TrimSpace(out.String())
		}
		_, text, _ = strings.Cut(rest, "</think>")
	}
}

// presentable is what can be shown of an answer that is still being written: no thoughts, no half citation.
func presentable(text string, outcomes []plan.Outcome) string {
	text = withoutThoughts(text)
	for _, tag := range []string{"<think>", "</think>"} {
		for n := len(tag) - 1; n > 0; n-- {
			if strings.HasSuffix(text, tag[:n]) {
				text = text[:len(text)-n]
				break
			}
		}
	}
	if open := strings.LastIndexByte(text, '['); open >= 0 && !strings.Contains(text[open:], "]") && len(text)-open < maxMark {
		text = text[:open]
	}
	text, _ = cite(text, outcomes)
	return text
}
