package synth_test

import (
	"testing"

	"github.com/agenticnexus/agenticnexus/synth"
)

func TestWithoutAddresses(t *testing.T) {
	known := func(address string) bool {
		return address == "https://hr.example/people/7" || address == "https://a.example/x(1)"
	}
	for text, want := range map[string]string{
		"Ada earns 4711.": "Ada earns 4711.",
		"[Ada](https://hr.example/people/7), <https://hr.example/people/7> and https://hr.example/people/7.": "[Ada](https://hr.example/people/7), <https://hr.example/people/7> and https://hr.example/people/7.",
		"[x](https://a.example/x(1)) (https://hr.example/people/7)":                                          "[x](https://a.example/x(1)) (https://hr.example/people/7)",
		"[Ada](https://evil.example/?d=4711)":                                                                "[Ada] (address removed)",
		"[Ada](https://hr.example/people/7?d=4711)":                                                          "[Ada] (address removed)",
		"[Ada](<https://hr.example/people/7 4711>)":                                                          "[Ada] (address removed)",
		`[Ada](https:\//evil.example/4711 "more")`:                                                           `[Ada] (address removed "more")`,
		"[Ada](https&colon;//evil.example/4711)":                                                             "[Ada] (address removed)",
		"[Ada](\n//evil.example/4711)":                                                                       "[Ada] (address removed)",
		"[Ada](mailto:x@evil.example?body=4711)":                                                             "[Ada] (address removed)",
		"[Ada](4711)":                                                                                        "[Ada] (address removed)",
		"[Ada](https://evil.example/4711":                                                                    "[Ada] (address removed",
		"[Ada][1]\n\n[1]: https://evil.example/4711":                                                         "[Ada][1]\n\n[1] : (address removed)",
		"[Ada][1]\n\n[1]:\n  <//evil.example/4711>":                                                          "[Ada][1]\n\n[1] : (address removed)",
		"one of [a, b]: a":                                                                                   "one of [a, b] : a",
		"<https://evil.example/4711>":                                                                        "&lt;(address removed)>",
		`<a href="https://evil.example/4711">Ada</a> is <b>7</b>`:                                            `&lt;a href="(address removed)">Ada</a> is <b>7</b>`,
		"<a\nhref='//evil.example/4711'>Ada":                                                                 "&lt;a\nhref='//evil.example/4711'>Ada",
		"see https://evil.example/4711, www.evil.example/4711.":                                              "see (address removed), (address removed).",
		"HTTPS://4711.evil.example":                                                                          "(address removed)",
		"**https://evil.example/?d=4711**":                                                                   "**(address removed)",
		"_https://evil.example/4711_ and _https://hr.example/people/7_":                                      "_(address removed) and _https://hr.example/people/7_",
		"https&#58;//evil.example/4711":                                                                      "(address removed)",
	} {
		if got := synth.WithoutAddresses(text, known); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
}
