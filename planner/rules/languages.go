package rules

import (
	"regexp"
	"strings"
)

// languageCodes are the ISO 639-1 codes of the languages most spoken and most taught, by their English names.
var languageCodes = table(`
ar: arabic
bn: bengali
cs: czech
da: danish
de: german
el: greek
en: english
es: spanish
fa: persian, farsi
fi: finnish
fr: french
he: hebrew
hi: hindi
hu: hungarian
id: indonesian
it: italian
ja: japanese
ko: korean
ms: malay
nl: dutch
no: norwegian
pl: polish
pt: portuguese
ro: romanian
ru: russian
sv: swedish
sw: swahili
th: thai
tr: turkish
uk: ukrainian
ur: urdu
vi: vietnamese
zh: chinese, mandarin
`)

// localeForm is a language code, perhaps with a region: "es", "es-ES".
var localeForm = regexp.MustCompile(`^([a-z]{2})(?:[-_][A-Z]{2})?$`)

// language picks the locale of an enumeration whose language the question names.
func (f *filler) language(q param) (candidate, bool) {
	if q.classOf() != classLanguage {
		return candidate{}, false
	}
	for i, t := range f.r.tokens {
		code := languageCodes[t.lower]
		if code == "" {
			continue
		}
		for _, e := range q.enum {
			s, _ := e.(string)
			if m := localeForm.FindStringSubmatch(s); m != nil && m[1] == code {
				return candidate{s, 3, mention{kind: kindProper, start: i, end: i + 1, text: t.text}}, true
			}
		}
	}
	return candidate{}, false
}

// spellLanguage writes a language as a parameter wants it: as a code where its examples or description speak of codes.
func (p param) spellLanguage(name string) string {
	code := languageCodes[strings.ToLower(name)]
	if code == "" {
		return name
	}
	for _, e := range p.examples {
		if m := localeForm.FindStringSubmatch(e); m != nil {
			return code
		}
	}
	if strings.Contains(p.description, "ISO 639") || p.descStems["code"] {
		return code
	}
	return name
}
