package search

import "strings"

// IsStopWord reports whether a lower-case word carries no topic: articles, pronouns, prepositions, auxiliaries,
// polite phrases and fillers.
func IsStopWord(word string) bool { return stopWords[word] }

var stopWords = set(`
a an the this that these those some any each every either neither both all few many much more most other another
such own same several
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it
its itself they them their theirs
themselves who whom whose which what when where why how whatever whichever whoever one ones something anything
everything nothing someone anyone everyone
and or but nor so yet if then than because as until till while although though whether unless since however also
too either both
of at by for with about against between into through during before after above below to from up down in out on
off over under again further once
within without upon onto toward towards along across behind beyond near around per via among amongst
is am are was were be been being have has had having do does did doing done will would shall should can could
may might must ought
im ive ill youre youve youll hes shes theyre theyve theyll weve were well thats whats wheres theres heres its
lets dont doesnt didnt cant couldnt
wont wouldnt shouldnt isnt arent wasnt werent hasnt havent hadnt aint
here there now just only even still already ever never not no yes very really quite rather almost maybe perhaps
please thanks thank hi hey hello dear ok okay
want wants wanted wanting need needs needed needing like likes liked would love wish hope help helps helping
able possible let lets know tell give gives giving gave
get gets getting got gotten go goes going gonna come comes coming make makes making sure use uses used using try
tries trying tried
think thinking wonder wondering wondered curious hoping wishing kindly appreciate appreciated grateful look
looking looks see seeing show shows showing put puts say says said ask asking work works working
thing things stuff lot lots bit kind sort way ways etc eg ie
first firstly second secondly third thirdly next finally lastly additionally furthermore moreover afterwards
meanwhile
specific certain particular different various based given provided following well good great best better
currently current
`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
