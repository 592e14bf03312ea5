package segment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/segment"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"getHTTPServer_config2": "get http server config 2",
		"list-all URLs":         "list all urls",
		"s3 mp3 3d":             "s3 mp3 3d",
		"Café über":             "cafe uber",
		"don't John's I'd":      "dont john i",
		"天气预报":                  "天气 气预 预报",
		"":                      "",
		"(((":                   "",
	} {
		if got := strings.Join(segment.Words(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"It costs 3.5 dollars. Is that much?":            {"It costs 3.5 dollars.", "Is that much?"},
		"Ask Dr. Smith, e.g. by mail":                    {"Ask Dr. Smith, e.g. by mail"},
		`Post "Come home. And then call me" to the wall`: {`Post "Come home. And then call me" to the wall`},
		"One (or two; or three). Four; five\nsix":        {"One (or two; or three).", "Four;", "five", "six"},
		"天气？新闻":                                          {"天气？", "新闻"},
		"":                                               nil,
	} {
		if got := segment.Sentences(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
