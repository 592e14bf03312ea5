package terminal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
)

// marked replaces escape sequences by what they mean, so that tables can be read.
func marked(s string) string {
	return strings.NewReplacer("\x1b[0m", "</>", "\x1b[0;1m", "<b>", "\x1b[0;2m", "<dim>", "\x1b[0;3m", "<i>",
		"\x1b[0;4m", "<u>", "\x1b[0;36m", "<code>", "\x1b[0;1;4m", "<h>", "\x1b[0;1;3;4m", "<hi>", "\x1b[0;1;3m", "<bi>").Replace(s)
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"heading", "# One *two*\n\n### Three", "<h>One <hi>two</>\n\n<b>Three</>"},
		{"emphasis", "a **b** *c* __d__ ***e***, 2 * 3 * 4", "a <b>b</> <i>c</> <b>d</> <bi>e</>, 2 * 3 * 4"},
		{"line ends", "one\ntwo  \nthree", "one\ntwo\nthree"},
		{"wrapped", "the quick brown fox jumps over it", "the quick brown fox\njumps over it"},
		{"long word", "see https://a.example/0123456789 now", "see\n<u>https://a.example/0123456789</>\nnow"},
		{"wide", "日本語日本語日本語日本語", "日本語日本語日本語日\n本語"},
		{"code", "`a*b`\n\n```go\n\tx := 1 // a long line stays as it is\n```", "<code>a*b</>\n\n  <code>    x := 1 // a long line stays as it is</>"},
		{"list", "- one\n- two words that wrap\n  - in\n    it\n\n3. three\n4. four", "• one\n• two words that\n  wrap\n  • in\n    it\n\n3. three\n4. four"},
		{"quote", "> one\n> > two", "<dim>│ </>one\n<dim>│ │ </>two"},
		{"rule", "a\n\n***\n\nb", "a\n\n<dim>────────────────────</>\n\nb"},
		{"link", "[a](https://b.example/c)", "<u>a</>\n<dim>(https://b.example/c)</>"},
		{"bare link", "<https://b.example> www.c.example", "<u>https://b.example</>\n<u>www.c.example</>"},
		{"link that lies", "[b.example](https://c.example)", "<u>b.example</>\n<dim>(https://c.example)</>"},
		{"user as host", "<https://b.com@c.io>", "<u>https://b.com@c.io</>\n<dim>(https://c.io)</>"},
		{"image", "![a](https://c.io/d)", "<u>a<dim> (https://c.io/d)</>"},
		{"reference", "[a]\n\n[a]: https://c.io/d", "<u>a<dim> (https://c.io/d)</>"},
		{"HTML", "a<br>b <i>c</i> &lt;d\n\n<div>\n*e*\n</div>", "a\nb <i>c</i> <d\n\n<div>\n*e*\n</div>"},
		{"table", "| a | b |\n|--|--:|\n| one | 2 |\n| **x** | 日 |\n", "<b>a</>  <dim> │ </> <b>b</>\n<dim>────┼───</>\none<dim> │ </> 2\n<b>x</>  <dim> │ </>日"},
		{"wide table", "a\n\n| a | b |\n|:-:|--|\n| x | one two three |", "a\n\n<b>a<dim> │ <b>b</>\n<dim>──┼──────────────</>\nx<dim> │ </>one two three"},
		{"wrapped table", "| a | b |\n|--|--|\n| x | one two three four |", "<b>a<dim> │ <b>b</>\n<dim>──┼─────────────────</>\nx<dim> │ </>one two three\n <dim> │ </>four"},
		{"narrow table", "| a | b | c |\n|--|--|--|\n| 0123456789 | 0123456789 | 2 |\n| 3 | 4 | 5 |", "<b>a: </>0123456789\n<b>b: </>0123456789\n<b>c: </>2\n\n<b>a: </>3\n<b>b: </>4\n<b>c: </>5"},
		{"table in a list", "- a\n\n  | b |\n  |--|\n  | c |", "• a\n\n  <b>b</>\n  <dim>─</>\n  c"},
		{"escape sequences", "\x1b[31m `\x1b[0m` &#27;[1m [\u009b](\x07) \r", "␛[31m <code>␛[0m</> ␛[1m <u>�</>\n<dim>(␇)</>"},
		{"too long", "*a*" + strings.Repeat(" ", 32<<10) + "b", "*a*\nb"},
		{"too many cells", "*a*\n" + strings.Repeat("|", 34), "*a*\n" + strings.Repeat("|", 34)},
		{"hidden by entities", "a&#x202E;b&rlm;c&#xE0041;d", "abcd"},
		{"no entities", `&copy=2 &notit; \&lt; &amp;lt; &semi;`, "&copy=2 &notit; &lt;\n&lt; ;"},
		{"no line break", "a<broken>b<BR/>c", "a<broken>b\nc"},
		{"bidirectional", "[\u202ea](https://c.io)", "<u>a<dim> (https://c.io)</>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := marked(terminal.Markdown(row.text, 20)); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// TestDigest checks that only the marks of a digest count.
func TestDigest(t *testing.T) {
	t.Parallel()
	const text = "**read_file**\n- **a** (b: c) and more words\n  # __init__.py *x* &amp;\n\n\tif a * b:\n\n1. x | y\n--- \x1b[1m"
	const want = "<b>read_file</>\n• <b>a</> (b: c) and more\n  words\n  # __init__.py *x*\n  &amp;\n\n    if a * b:\n\n1. x | y\n--- ␛[1m"
	if got := marked(terminal.Digest(text, 22)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text    string
		columns int
		want    string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 5, "日本…"}, {"日本語", 6, "日本語"}, {"日本", 2, "…"}, {"éé́é", 3, "éé́é"}} {
		if got := terminal.Cut(row.text, row.columns); got != row.want {
			t.Errorf("Cut(%q, %d): got %q, want %q", row.text, row.columns, got, row.want)
		}
	}
}

// own are the escape sequences of the package.
var own = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// FuzzMarkdown checks that no other escape sequence or control character comes out.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n\n- b\n  > c\n\n| d |\n|--|\n| e |\n\x1b[31m&#27;", 40)
	f.Add(strings.Repeat("> ", 300)+"a", 80)
	f.Add(strings.Repeat("- ", 300)+"a", 0)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		for _, out := range []string{terminal.Markdown(text, columns%200), terminal.Digest(text, columns%200)} {
			for _, r := range own.ReplaceAllString(out, "") {
				if unicode.IsControl(r) && r != '\n' {
					t.Fatalf("got the control character %q in %q", r, out)
				}
			}
		}
	})
}
