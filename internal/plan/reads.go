package plan

import (
	"slices"
	"strings"
	"unicode"
)

// Reads reports whether calling the tool changes nothing: it says so, or it says nothing about it and its name or
// description begins with a verb of reading. Every other tool writes. Hints of servers that are not trusted are taken
// off before a Tool is made.
func (t Tool) Reads() bool {
	a := t.Annotations
	switch {
	case a.ReadOnlyHint != nil:
		return *a.ReadOnlyHint
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return false
	}
	words := lowerWords(t.Tool)
	own := lowerWords(t.Tool[strings.LastIndexAny(t.Tool, "./:")+1:]) // without the module in front
	switch {
	case len(words) > 0 && reads(words[0]), len(own) > 0 && reads(own[0]):
		return !actsToo(words)
	case slices.ContainsFunc(words, acts):
		return false
	case slices.ContainsFunc(words, reads):
		return true
	}
	words = lowerWords(firstText(t.Description, 300))
	for _, w := range words[:min(len(words), 6)] {
		switch {
		case reads(w):
			return true
		case acts(w):
			return false
		}
	}
	return false
}

// actsToo reports whether a name joins a verb of another kind to its first: "find_and_replace".
func actsToo(words []string) bool {
	for i, w := range words[:len(words)-1] {
		if (w == "and" || w == "or") && acts(words[i+1]) {
			return true
		}
	}
	return false
}

// Verbs begin the names and descriptions of tools. Those of readingVerbs change nothing; those of actingVerbs are known
// to change something, so that a later verb of reading ("delete and list the rest") does not count.
var (
	readingVerbs = verbSet(`
analyse analyze assess browse calculate check classify compare compute convert count decode describe detect determine
diff display estimate evaluate examine explain extract factor fetch filter find forecast get hash identify inspect
inquire interpolate list locate look lookup match measure monitor obtain parse ping predict preview provide query read
recommend resolve retrieve return scan search see show simplify solve sort stat suggest summarise summarize track
translate validate verify view`)
	actingVerbs = verbSet(`
accept activate add allocate append apply approve archive assign attach authorize ban block book buy call cancel
change charge clear close comment commit compress configure connect copy create deactivate decline delete deploy
destroy disable drop edit email empty enable erase execute grant import increment insert install invite invoke issue
kill launch lock log merge modify move mute notify open order overwrite patch pause pay play post publish purchase
purge push put record refund register reject remove rename replace reply reschedule reserve reset respond restart
restore resume revoke rollback run save schedule send set share sign start stop store submit subscribe switch sync
terminate toggle transfer trigger turn unlock unsubscribe update upgrade upload wipe withdraw write`)
)

func reads(word string) bool { return readingVerbs[word] || readingVerbs[baseForm(word)] }

func acts(word string) bool { return actingVerbs[word] || actingVerbs[baseForm(word)] }

// baseForm takes off the third person of a verb: "retrieves", "searches", "classifies".
func baseForm(word string) string {
	base, ok := strings.CutSuffix(word, "s")
	switch {
	case !ok || strings.HasSuffix(base, "s"):
		return word
	case strings.HasSuffix(base, "ie"):
		return strings.TrimSuffix(base, "ie") + "y"
	}
	for _, hiss := range []string{"ches", "shes", "sses", "xes"} {
		if strings.HasSuffix(word, hiss) {
			return strings.TrimSuffix(word, "es")
		}
	}
	return base
}

func verbSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// lowerWords splits a name or text at everything that is no letter, and at the humps of camelCase.
func lowerWords(text string) []string {
	var words []string
	start, previous := -1, ' '
	runes := []rune(text)
	cut := func(end int) {
		if start >= 0 {
			words = append(words, strings.ToLower(string(runes[start:end])))
			start = -1
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			cut(i)
		case start < 0:
			start = i
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			cut(i)
			start = i
		}
		previous = r
	}
	cut(len(runes))
	return words
}

func firstText(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}
