package texts_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

func TestVisible(t *testing.T) {
	for _, row := range []struct{ text, description, name, value, kinds string }{
		{"plain, Zürich, 東京, भारत, مرحبا, 12%", "", "", "", ""}, // empty = unchanged
		{"a\tb\nc", "a\tb\nc", "abc", "a\tb\nc", "control"},
		{"a\r\x00\x1b[31m\u0085\u2028\u2029b\x7f", "a[31mb", "a[31mb", "a\r\x00\x1b[31m\u0085\u2028\u2029b\x7f", "control"},
		{"a\u202eb\u2066c\u200e\u061c", "abc", "abc", "abc", "bidirectional"},
		{"a\u200bb\u2060c\ufeff\u00ad\u034f\u3164\u115f", "abc", "abc", "a\u200bb\u2060c\ufeff\u00ad\u034f\u3164\u115f", "zero_width"},
		{"a\U000e0068\U000e0069\U000e007f", "a", "a", "a", "tag"},
		{"a\ufe0f\U000e0100", "a", "a", "a\ufe0f\U000e0100", "zero_width"},
		{"👩\u200d🚀", "👩🚀", "👩🚀", "👩\u200d🚀", "zero_width"},
		{"\u202e\U000e0041\u200b\x01", "", "", "\u200b\x01", "bidirectional tag zero_width control"},
		{"\u0600 and \u06dd are visible", "", "", "", ""},
	} {
		want := func(s string) string {
			if row.kinds == "" {
				return row.text
			}
			return s
		}
		if got := texts.Visible(row.text); got != want(row.description) {
			t.Errorf("%q: got the description %q, want %q", row.text, got, want(row.description))
		}
		if got := texts.VisibleName(row.text); got != want(row.name) {
			t.Errorf("%q: got the name %q, want %q", row.text, got, want(row.name))
		}
		if got := texts.VisibleValue(row.text); got != want(row.value) {
			t.Errorf("%q: got the value %q, want %q", row.text, got, want(row.value))
		}
		if got := strings.Join(texts.Hidden(row.text), " "); got != row.kinds {
			t.Errorf("%q: got the kinds %q, want %q", row.text, got, row.kinds)
		}
	}
}

func TestReveal(t *testing.T) {
	if got, want := texts.Reveal("a\u200b\U000e0041\x1b\xffü\n"), "a<U+200B><U+E0041><U+001B><FF>ü\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
