package texts_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

func TestCut(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"ééé", 3, "é…"}, {"é", 0, "…"}, {"", 0, ""}, {"\xff\xff", 1, "\xff…"},
	} {
		if got := texts.Cut(row.text, row.limit); got != row.want {
			t.Errorf("Cut(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"éa", 1, ""}, {"éa", 2, "é"}, {"\x80\x80", 1, ""},
	} {
		if got := texts.Prefix(row.text, row.limit); got != row.want {
			t.Errorf("Prefix(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{" a\r\n\tb\x00c\u2028d\u0085 ", 20, "a b c d"},
		{"a\xffb", 20, "ab"},
		{"one two three", 7, "one two…"},
		{strings.Repeat(" ", 1000) + "x", 10, "…"},
		{"\x1b[31mred", 20, "[31mred"},
		{strings.Repeat(" ", 77) + "abc", 10, "abc"},   // 80 bytes are read
		{strings.Repeat(" ", 77) + "abcd", 10, "abc…"}, // and no more
		{strings.Repeat("a ", 5) + strings.Repeat(" ", 80), 9, "a a a a a…"},
	} {
		if got := texts.Line(row.text, row.limit); got != row.want {
			t.Errorf("Line(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\nb", 1)
	f.Add("\xff\xf0é", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got := texts.Line(text, limit)
		if !utf8.ValidString(got) || len(got) > limit+len("…") || strings.ContainsAny(got, "\r\n\x00\u2028\u2029\u0085") {
			t.Errorf("Line(%q, %d): got %q", text, limit, got)
		}
	})
}

func TestSimilar(t *testing.T) {
	tools := []string{"read_file", "read_graph", "write_file", "Calculate", strings.Repeat("x", 65)}
	for _, tc := range []struct {
		name  string
		names []string
		limit int
		want  []string
	}{
		{"read_fiel", tools, 3, []string{"read_file"}},
		{"read_grap", tools, 3, []string{"read_graph", "read_file"}},
		{"read_grap", tools, 1, []string{"read_graph"}},
		{"calculate", tools, 1, []string{"Calculate"}},
		{"frobnicate", tools, 3, nil},
		{"", tools, 3, nil},
		{"ab", []string{"something_else", "abc", "b", "abcd"}, 3, []string{"abc", "b"}}, // one letter more or less, not two
		{"foo", []string{"log", "fob"}, 2, []string{"fob"}},
		{"form", []string{"foal", "from"}, 2, []string{"from", "foal"}}, // a swap is one change
		{"abcd", []string{"bacx", "badc"}, 2, []string{"bacx", "badc"}},
		{strings.Repeat("x", 64), []string{strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65)}, 3,
			[]string{strings.Repeat("x", 64), strings.Repeat("x", 63)}},
		{strings.Repeat("x", 65), []string{strings.Repeat("x", 64)}, 3, nil}, // beyond what is compared
		{strings.Repeat("x", 66), tools, 3, nil},
	} {
		if got := texts.Similar(tc.name, tc.names, tc.limit); !slices.Equal(got, tc.want) {
			t.Errorf("Similar(%q, %q, %d): got %v, want %v", tc.name, tc.names, tc.limit, got, tc.want)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"getHTTPServer_config2": "get http server config 2",
		"list-all URLs":         "list all urls",
		"URLsOf someHTTPProxy":  "urls of some http proxy",
		"s3 mp3 3d":             "s3 mp3 3d",
		"Café über":             "cafe uber",
		"don't John's I'd":      "dont john i",
		"天气预报":                  "天气 气预 预报",
		"データベース":                "デー ータ タベ ベー ース",
		"ｴｱｺﾝ ＰＤＦ２":             "エア アコ コン pdf 2",
		"날씨를 알려줘":               "날씨 씨를 알려 려줘",
		"":                      "",
		"(((":                   "",
	} {
		if got := strings.Join(texts.Words(text), " "); got != want {
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
		"Pens,\u00a0etc. of ours":                        {"Pens,\u00a0etc. of ours"}, // after a space of two bytes
		"Ask \u05d0. Levi":                               {"Ask \u05d0. Levi"},        // a letter of two bytes
		"":                                               nil,
	} {
		if got := texts.Sentences(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
