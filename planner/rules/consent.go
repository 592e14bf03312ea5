package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// verbGroups are verbs that ask for the same kind of change. They are general: what they are about the nouns tell.
var verbGroups = readGroups(`
create make add new generate build insert register set schedule plan put open start
delete remove erase clear drop
update change modify edit set adjust alter rename mark
send email mail message text deliver forward
write save store put overwrite
move rename transfer
move reschedule postpone update shift
book reserve
buy purchase order
cancel abort
play listen start
post publish write share tweet
start run launch execute trigger begin
stop end terminate halt abort
switch toggle
answer reply respond
pay transfer send
log record note track add
add sum total plus
read say contain print
get show read list view display open fetch retrieve find search look give tell see
`)

func readGroups(lines string) []map[string]bool {
	var out []map[string]bool
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		out = append(out, stemSet(line))
	}
	return out
}

// creating are verbs with which a noun says what is made, so that the noun alone may be the verb: "comment on issue 7",
// "email Ann".
var creating = stemSet("create make add new send post write log give put leave submit")

// changes are verbs that ask for a change, so that a tool that only reads does not serve them.
var changes = stemSet(`create add make delete remove update change modify edit rename send email mail message write save move book reserve buy purchase
order cancel abort close merge post publish pay transfer deploy install upload schedule reschedule reply invite assign submit print play`)

// light verbs leave it to a noun to say what is to be done: "make a reservation".
var light = stemSet("make do have give take place perform establish set put need want get carry")

// toolVerb is the stem of what a tool does: the first verb of its name, else that of its description.
func toolVerb(t plan.Tool) string {
	for _, text := range []string{t.Tool, firstSentence(t.Description)} {
		words := search.Words(text)
		for i, w := range words[:min(len(words), 8)] {
			if search.RequestVerb(w) || i == 0 && text != t.Tool {
				return search.Stem(strings.TrimSuffix(w, "s"))
			}
		}
	}
	if words := search.Words(t.Tool); len(words) > 0 {
		return search.Stem(words[0])
	}
	return ""
}

// does reports whether a verb of a question, given by its stems, asks for what a tool does.
func (f *profile) does(verb []string) bool {
	for _, v := range verb {
		if v == f.verb || sameGroup(v, f.verb) || slices.Contains(f.name, v) && !f.module[v] && (creating[f.verb] || slices.Index(f.name, v) == 0) {
			return true
		}
		if f.reads && slices.ContainsFunc(f.name, func(n string) bool { return sameGroup(v, n) }) { // "add" for get_sum
			return true
		}
		for _, p := range f.params { // "decline the invitation": response is accept or decline
			if slices.ContainsFunc(choices(p.Schema, 20), func(c string) bool {
				s := search.Stem(strings.ToLower(c))
				return s == v || sameGroup(s, v)
			}) {
				return true
			}
		}
	}
	return false
}

func sameGroup(a, b string) bool {
	return slices.ContainsFunc(verbGroups, func(g map[string]bool) bool { return g[a] && g[b] })
}
