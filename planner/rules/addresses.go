package rules

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	emailForm  = regexp.MustCompile(`^[\w.+-]+@[\w-]+(\.[\w-]+)+$`)
	urlForm    = regexp.MustCompile(`^(?i)([a-z][a-z0-9+.-]*://\S+|www\.\S+)$`)
	domainForm = regexp.MustCompile(`^(?i)([a-z0-9-]+\.)+[a-z]{2,12}(/\S*)?$`)
	ipForm     = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){3}(:\d+)?(/\d+)?$`)
	pathForm   = regexp.MustCompile(`^(?i)([a-z]:)?[~.]{0,2}([/\\][\w.@%+ -]*)+$|^[\w-]+(/[\w.-]+)*\.[a-z][a-z0-9]{1,4}$`)
)

// addresses finds e-mail addresses, URLs, host names, IP addresses and file paths.
func (r reading) addresses() []mention {
	var out []mention
	for i, t := range r.tokens {
		if len(t.text) > 300 {
			continue
		}
		m := mention{start: i, end: i + 1, text: t.text}
		switch {
		case emailForm.MatchString(t.text):
			m.kind = kindEmail
		case urlForm.MatchString(t.text), ipForm.MatchString(t.text):
			m.kind = kindURL
		case domainForm.MatchString(t.text) && !fileEnding[ending(t.text)] && unicode.IsLetter(rune(t.text[len(t.text)-1])) && !sentenceEnd(t.text):
			m.kind = kindURL
		case pathForm.MatchString(t.text) && (strings.ContainsAny(t.text, "/\\") && !unitSlash(t.text) || fileEnding[ending(t.text)]):
			m.kind = kindPath
		default:
			continue
		}
		out = append(out, m)
	}
	return out
}

func ending(s string) string {
	return strings.ToLower(s[strings.LastIndexByte(s, '.')+1:])
}

// sentenceEnd reports whether a dotted word is two sentences run together, or an abbreviation.
func sentenceEnd(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return unicode.IsUpper(rune(s[i+1])) || i < 2 || strings.Count(s, ".") == len(s)/2
}

// unitSlash reports whether a slash joins two words ("and/or", "km/h") rather than a path.
func unitSlash(s string) bool {
	return s[0] != '/' && s[0] != '~' && s[0] != '.' && s[0] != '\\' && !strings.Contains(s, ":") && strings.Count(s, "/") == 1 && !strings.Contains(s, ".")
}

var fileEnding = set(`txt md pdf csv tsv json yaml yml xml html htm doc docx xls xlsx ppt pptx png jpg jpeg gif svg bmp webp mp3 mp4 wav m4a avi mov flac ogg
zip gz tar py go js ts java c cpp h rb rs sh sql log ini cfg conf toml db sqlite exe bat pb h5 pt pkl onnx npy parquet tex rtf`)
