package search

// Stem reduces an English lower-case word to its stem, so that "retrieving", "retrieves" and
// "retrieval" meet. It is M. F. Porter's algorithm ("An algorithm for suffix stripping", 1980) with a
// table of irregular forms in front. Words with anything but a-z are returned unchanged.
func Stem(word string) string {
	if s, ok := irregular[word]; ok {
		return s
	}
	if len(word) <= 2 {
		return word
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	w := porter{[]byte(word)}
	w.plural()
	w.pastAndProgressive()
	w.finalY()
	w.rewrite(doubleSuffixes, 0)
	w.rewrite(tripleSuffixes, 0)
	w.strip()
	w.finalE()
	return string(w.b)
}

// irregular maps forms that no suffix rule reaches to the stem of their base form.
var irregular = map[string]string{
	"bought": "bui", "found": "find", "sent": "send", "wrote": "write", "written": "write", "made": "make",
	"gave": "give", "given": "give", "took": "take", "taken": "take", "paid": "pai", "spent": "spend", "sold": "sell",
	"sought": "seek", "knew": "know", "known": "know", "told": "tell", "said": "sai", "went": "go", "gone": "go",
	"began": "begin", "begun": "begin", "built": "build", "drew": "draw", "drawn": "draw", "drove": "drive", "driven": "drive",
	"ate": "eat", "eaten": "eat", "flew": "fly", "flown": "fly", "held": "hold", "kept": "keep", "led": "lead", "lost": "lose",
	"met": "meet", "ran": "run", "sang": "sing", "saw": "see", "seen": "see", "shown": "show", "spoke": "speak",
	"spoken": "speak", "taught": "teach", "thought": "think", "won": "win", "chose": "choos", "chosen": "choos",
	"children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman", "feet": "foot", "mice": "mouse",
	"indices": "index", "indexes": "index", "vertices": "vertex", "matrices": "matrix", "analyses": "analysi",
	"analysis": "analyz", "analyse": "analyz", "analyze": "analyz", "analyzing": "analyz", "analyzed": "analyz", "analyzer": "analyz",
	"analytics": "analyz", "lives": "life", "leaves": "leaf", "media": "medium", "criteria": "criterion",
	"news": "news", "series": "seri", "species": "speci", "gas": "gas", "bus": "bus", "plus": "plus", "always": "alwai",
	"weather": "weather", "translation": "translat", "ids": "id", "apis": "api", "urls": "url", "uri": "url", "uris": "url",
	"dns": "dns", "gps": "gps", "aws": "aws", "css": "css", "sms": "sms", "rss": "rss", "cms": "cms", "ios": "ios",
}

var doubleSuffixes = []suffix{
	{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"abli", "able"}, {"alli", "al"},
	{"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"},
	{"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"}, {"logi", "log"},
}

var tripleSuffixes = []suffix{
	{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
}

var lastSuffixes = []string{
	"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou",
}

type suffix struct{ from, to string }

// porter is a word being stemmed; the methods are the steps of the paper.
type porter struct{ b []byte }

func (w *porter) ends(s string) bool {
	n := len(w.b) - len(s)
	return n >= 0 && w.b[len(w.b)-1] == s[len(s)-1] && string(w.b[n:]) == s
}

func (w *porter) consonant(i int) bool {
	switch w.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !w.consonant(i-1)
	}
	return true
}

// measure counts the vowel-consonant sequences of b[:n].
func (w *porter) measure(n int) int {
	m, vowel := 0, false
	for i := range n {
		c := w.consonant(i)
		if c && vowel {
			m++
		}
		vowel = !c
	}
	return m
}

func (w *porter) hasVowel(n int) bool {
	for i := range n {
		if !w.consonant(i) {
			return true
		}
	}
	return false
}

func (w *porter) doubled() bool {
	n := len(w.b)
	return n >= 2 && w.b[n-1] == w.b[n-2] && w.consonant(n-1)
}

// short reports whether b[:n] ends consonant-vowel-consonant, the last not w, x or y.
func (w *porter) short(n int) bool {
	if n < 3 || !w.consonant(n-1) || w.consonant(n-2) || !w.consonant(n-3) {
		return false
	}
	c := w.b[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}

func (w *porter) cut(n int, add string) { w.b = append(w.b[:len(w.b)-n], add...) }

func (w *porter) plural() {
	switch {
	case w.ends("sses"), w.ends("ies"):
		w.cut(2, "")
	case w.ends("ss"), w.ends("us"), w.ends("is"):
	case w.ends("s"):
		w.cut(1, "")
	}
}

func (w *porter) pastAndProgressive() {
	switch {
	case w.ends("eed"):
		if w.measure(len(w.b)-3) > 0 {
			w.cut(1, "")
		}
		return
	case w.ends("ed") && w.hasVowel(len(w.b)-2):
		w.cut(2, "")
	case w.ends("ing") && w.hasVowel(len(w.b)-3):
		w.cut(3, "")
	default:
		return
	}
	switch {
	case w.ends("at"), w.ends("bl"), w.ends("iz"):
		w.cut(0, "e")
	case w.doubled() && !w.ends("l") && !w.ends("s") && !w.ends("z"):
		w.cut(1, "")
	case w.measure(len(w.b)) == 1 && w.short(len(w.b)):
		w.cut(0, "e")
	}
}

func (w *porter) finalY() {
	if n := len(w.b); w.ends("y") && w.hasVowel(n-1) {
		w.b[n-1] = 'i'
	}
}

func (w *porter) rewrite(rules []suffix, measure int) {
	for _, r := range rules {
		if w.ends(r.from) {
			if w.measure(len(w.b)-len(r.from)) > measure {
				w.cut(len(r.from), r.to)
			}
			return
		}
	}
}

func (w *porter) strip() {
	for _, s := range lastSuffixes {
		if w.ends(s) {
			if w.measure(len(w.b)-len(s)) > 1 {
				w.cut(len(s), "")
			}
			return
		}
	}
	if w.ends("sion") || w.ends("tion") {
		if w.measure(len(w.b)-3) > 1 {
			w.cut(3, "")
		}
	}
}

func (w *porter) finalE() {
	n := len(w.b)
	if w.ends("e") {
		if m := w.measure(n - 1); m > 1 || m == 1 && !w.short(n-1) {
			w.cut(1, "")
		}
	}
	if n = len(w.b); w.ends("ll") && w.measure(n-1) > 1 {
		w.cut(1, "")
	}
}
