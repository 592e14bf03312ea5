package plan

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Reads reports whether a call of the tool changes nothing: the tool is marked read-only, or it has no such hint and
// its name or description begins with a reading verb. Every other tool writes. Tools of untrusted servers have no
// hints.
func (t Tool) Reads() bool {
	a := t.Annotations
	switch {
	case a.ReadOnlyHint != nil:
		return *a.ReadOnlyHint
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return false
	}
	words := texts.Words(t.Tool)
	own := texts.Words(t.Tool[strings.LastIndexAny(t.Tool, "./:")+1:]) // without the module in front
	switch {
	case len(words) > 0 && reads(words[0]), len(own) > 0 && reads(own[0]):
		return !actsToo(words)
	case slices.ContainsFunc(words, Acts):
		return false
	case slices.ContainsFunc(words, reads):
		return true
	}
	words = texts.Words(texts.Prefix(t.Description, 300))
	for i, w := range words[:min(len(words), 6)] {
		switch {
		case reads(w), i == 0 && w == "echo": // a device elsewhere
			return !actsToo(words[i:min(len(words), i+3)])
		case Acts(w):
			return false
		}
	}
	return false
}

// Cumulative reports whether a second call with the same arguments certainly repeats the effect of the first: the
// tool is marked as writing, or its name or description says so, and it is not marked idempotent. For tools without
// any indication, neither Cumulative nor Reads holds.
func (t Tool) Cumulative() bool {
	if t.Reads() || t.Annotations.Repeatable() {
		return false
	}
	about := texts.Words(texts.Prefix(t.Description, 300))
	return t.Annotations.ReadOnlyHint != nil || t.Annotations.Destructive() ||
		slices.ContainsFunc(slices.Concat(texts.Words(t.Tool), about[:min(len(about), 6)]), Acts)
}

// actsToo reports whether words join an acting verb to a reading verb, as in "find_and_replace".
func actsToo(words []string) bool {
	for i, w := range words[:len(words)-1] {
		if (w == "and" || w == "or") && Acts(words[i+1]) {
			return true
		}
	}
	return false
}

// Names and descriptions of tools begin with verbs. After an acting verb a later reading verb does not count, as in
// "delete and list the rest".
var (
	readingVerbs = verbSet(`
analyse analyze assess browse calculate check classify compare compute convert count decode describe detect
determine diff display divide echoes encode estimate evaluate examine explain extract factor fetch filter find
forecast get hash identify inquire inspect interpolate list locate look lookup match measure monitor multiply
obtain parse ping predict preview provide query read recommend resolve retrieve return scan search see show
simplify solve sort stat subtract suggest sum summarise summarize track translate validate verify view`)
	actingVerbs = verbSet(`
accept activate add allocate append apply approve archive assign attach authorize ban block book buy call cancel
change charge clear
close comment commit compress configure connect copy create deactivate decline delete deploy destroy disable
drop edit email empty
enable erase execute grant import increment insert install invite invoke issue kill launch lock log merge modify
move mute notify
open order overwrite patch pause pay play post publish purchase purge push put record refund register reject
remove rename replace
reply reschedule reserve reset respond restart restore resume revoke rollback run save schedule send set share
sign start stop store
submit subscribe switch sync terminate toggle transfer trigger turn unlock unsubscribe update upgrade upload
wipe withdraw write`)
)

func reads(word string) bool { return readingVerbs[word] || readingVerbs[baseForm(word)] }

// Acts reports whether an English verb in lower case is one of those that change something, such as "send".
func Acts(verb string) bool { return actingVerbs[verb] || actingVerbs[baseForm(verb)] }

// baseForm returns the base form of a third person: of "retrieves", "searches", "classifies".
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
