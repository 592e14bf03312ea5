package search

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/porter"
)

// Stem reduces an English lower-case word to its stem, so that "retrieving", "retrieves" and "retrieval" match. It
// implements M. F. Porter's algorithm ("An algorithm for suffix stripping", 1980) with his later rule for "-logy",
// adds irregular forms, and keeps words such as "status" and "various". Words with characters other than a-z are
// returned unchanged.
func Stem(word string) string {
	if s, ok := irregular[word]; ok {
		return s
	}
	if len(word) <= 2 || strings.HasSuffix(word, "is") ||
		strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "ous") {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	porter.Stem(env)
	stem := env.Current()
	switch {
	case strings.HasSuffix(stem, "ou") && stem+"s" == word:
		return word
	case strings.HasSuffix(stem, "logi") && science.MatchString(stem):
		return strings.TrimSuffix(stem, "i")
	}
	return stem
}

// science matches stems such as "technologi", not "biologi".
var science = regexp.MustCompile(`[aeiouy][^aeiouy].*logi$`)

// irregular maps irregular forms to the stem of their base form.
var irregular = map[string]string{
	"bought": "bui", "found": "find", "sent": "send", "wrote": "write", "written": "write", "made": "make",
	"gave": "give", "given": "give", "took": "take", "taken": "take", "paid": "pai", "spent": "spend", "sold": "sell",
	"sought": "seek", "knew": "know", "known": "know", "told": "tell", "said": "sai", "went": "go", "gone": "go",
	"began": "begin", "begun": "begin", "built": "build", "drew": "draw", "drawn": "draw", "drove": "drive",
	"driven": "drive",
	"ate":    "eat", "eaten": "eat", "flew": "fly", "flown": "fly", "held": "hold", "kept": "keep", "led": "lead",
	"lost": "lose",
	"met":  "meet", "ran": "run", "sang": "sing", "saw": "see", "seen": "see", "shown": "show", "spoke": "speak",
	"spoken": "speak", "taught": "teach", "thought": "think", "won": "win", "chose": "choos", "chosen": "choos",
	"children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman", "feet": "foot",
	"mice":    "mouse",
	"indices": "index", "indexes": "index", "vertices": "vertex", "matrices": "matrix", "analyses": "analysi",
	"analysis": "analyz", "analyse": "analyz", "analyze": "analyz", "analyzing": "analyz", "analyzed": "analyz",
	"analyzer":  "analyz",
	"analytics": "analyz", "lives": "life", "leaves": "leaf", "media": "medium", "criteria": "criterion",
	"news": "news", "series": "seri", "species": "speci", "gas": "gas", "bus": "bus", "plus": "plus", "always": "alwai",
	"weather": "weather", "translation": "translat", "ids": "id", "apis": "api", "urls": "url", "uri": "url",
	"uris": "url",
	"dns":  "dns", "gps": "gps", "aws": "aws", "css": "css", "sms": "sms", "rss": "rss", "cms": "cms", "ios": "ios",
}

//go:embed thesaurus.txt
var thesaurusText string

// relations map stems to related stems.
type relations struct {
	synonyms map[string][]string // near synonyms
	topics   map[string][]string // words of questions to words of tools
}

// thesaurus is parsed on first use.
var thesaurus = sync.OnceValue(func() relations {
	r := relations{map[string][]string{}, map[string][]string{}}
	for line := range strings.Lines(thesaurusText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		said, about, directed := strings.Cut(line, ">")
		into := r.topics
		if !directed {
			about, into = said, r.synonyms
		}
		for a := range strings.FieldsSeq(said) {
			for b := range strings.FieldsSeq(about) {
				if a, b := Stem(a), Stem(b); a != b && !slices.Contains(r.synonyms[a], b) && !slices.Contains(into[a], b) {
					into[a] = append(into[a], b)
				}
			}
		}
	}
	return r
})

// Related reports whether two stems (see [Stem]) are equal or near synonyms.
func Related(a, b string) bool { return a == b || slices.Contains(thesaurus().synonyms[a], b) }

// ideographs returns the Chinese characters of a word. Each has a meaning of its own, so words that share one are often
// related.
func ideographs(word string) (each []string) {
	for _, r := range word {
		if r >= 0x2E80 && unicode.Is(unicode.Han, r) {
			each = append(each, string(r))
		}
	}
	return each
}

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
的 了 吗 呢 吧 啊 我 你 您 他 她 它 是 有 在 不 没 这 那 个 把 给 和 跟 与 就 都 也 还 很 要 想 能 会 么 什 哪 怎 请 帮 些 一 下
什么 怎么 哪里 哪儿 哪个 哪些 为什 多少 是不 不是 没有 有没 一个 一下 这个 那个 这些 那些 我的 你的 我们 帮我 请问 可以 能不 不能 会不 想要 需要 现在
ある いる する した して ます です だっ った って ない たい てい から まで など ので のに どう どこ どれ いつ いく なに 何が 何を これ それ あれ この その
ほし 欲し くだ ださ さい 下さ 教え えて くれ れる られ こと もの よう いい かな けど でも には では とは との にし にな なる
`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
