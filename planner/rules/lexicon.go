package rules

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

func table(lines string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(lines) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		for word := range strings.SplitSeq(value, ", ") {
			m[word] = key
		}
	}
	return m
}

// cueWords stand in front of arguments and tell their role.
var cueWords = set(`in at on from to of for with by about between near into onto around within under over above below until till before after since during through
via using called named titled regarding concerning as per like than versus vs against and or is are was were equals than including containing featuring starring`)

func stems(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[search.Stem(w)] = true
	}
	return m
}

// genericWords say little about what a tool is for.
var genericWords = stems(`information info data detail details list lists name names number numbers result results type types item items value values user users
given specific provide based tool function api service system available certain various retrieve id ids current latest new request query following example
option options different multiple single content set way help please find search get show tell`)

// commonVerbs are what most tools do.
var commonVerbs = stems(`get find search show list give tell retrieve fetch obtain provide return check look need help make create add update set calculate compute use
determine identify perform run start see view know generate read`)
