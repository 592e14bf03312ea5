package rules

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// Words that decide the form of a clause.
var (
	courtesy      = set("please kindly hi hey hello dear thanks thank thx ok okay pls bye goodbye good morning evening afternoon cheers also")
	closing       = set("please thanks thx pls cheers ,")
	joints        = set("and then , & but")
	afterJoints   = set("and then also please just only instead rather")
	plainJoints   = set("and then , & also please")
	requests      = set("can could would will")
	questionWords = set(`what what's who who's whom whose which when where how why is are was were am do does did has have had can could
		should shall would will may might must isn't aren't doesn't don't didn't`)
	asking      = set("what what's who who's whom where when why how")
	negative    = set("not never no don't dont nothing nobody neither nor without cannot can't won't avoid refrain")
	pronouns    = set("let i we he she they it you this that these those there somebody someone everybody i'm i've i'll we're he's she's it's let's lets nobody")
	subordinate = set(`if unless when whenever once suppose supposing assume assuming imagine pretend before after until till while although
		though because since as whether instead rather except provided even`)
	leading   = set("instead rather") // "instead of deleting it, read it"
	supposing = set(`if would should could might must may can shall will did do say said says saying tell told mean means meant write wrote
		i we you he she they anyone anybody someone somebody nobody when happens happen suppose not never`)
	wishWords    = set("would would'd want need like love to i you that know looking trying really")
	help         = set("help tools capabilities")
	aboutWords   = set("what which who how can could do does you are your u tools tool have has here help me is there capabilities available functions the i all use 's with of abilities")
	aboutTopics  = set("you your tools capabilities here")
	foreignWords = set(`der die das und ist nicht ein eine bitte mir wie welche wer wo warum zeige zeig soll ich sie
		le la les des est une pas quel quelle je vous dans pour montre
		el los una por qué que cómo está muéstrame del il gli`)
)

// Words of a plain command. Every other stop word of the search makes a command unclear.
var (
	plainWords = set("a an the my our to from in on at of for with into onto new and off up down out back over named called titled saying")
	inDoubt    = set("case theory principle jest fun question doubt private")
	// risky words say that a command is not meant now, not wholly, or not at all.
	risky = set(`later soon eventually yesterday tonight someday example instance kidding joke joking jokes jk lol haha theoretically hypothetically hypothetical pretend imagine suppose except excluding excluded exception instead rather avoid avoiding
		maybe perhaps possibly probably potentially ideally sometime today's always every each any all everything anything both either
		night morning noon evening afternoon weekend week month year hour moment next previous yet unless otherwise pending
		nobody none nope nah failing supposedly allegedly purpose mind dry simulation simulate
		approval permission confirmation confirm sarcasm sarcastically irony ironically quote unquote psych versus vs null nil twice whatever wait actually nevermind`)
	// idle verbs begin commands that no tool which reads can be for.
	idle      = set("keep hold make take stop have prevent leave let remember forget")
	timeUnits = set("second sec minute min hour day week month year")
)

// readingVerbs begin commands that the lists of the search and of the tools do not have.
var readingVerbs = set("search say echo summarize summarise pick print look cat ls dir describe define solve bake ping lookup count sum total")

// Words in the names of tools and parameters, as stems.
var (
	generic = set("get list show read find search fetch retrieve query lookup view display check tool api data info information run call use by")
	// synonyms maps verbs to what they have in common. They are few, because they decide what is written.
	synonyms = map[string]string{"delet": "delete", "remov": "delete", "eras": "delete", "creat": "create", "make": "create", "add": "create",
		"open": "create", "book": "book", "reserv": "book", "updat": "update", "chang": "update", "edit": "update", "modifi": "update",
		"set": "update", "start": "start", "launch": "start", "move": "move", "renam": "move", "put": "create", "schedul": "create"}
	dateNames   = stemSet("date day since deadline birthday due checkin checkout")
	clockNames  = stemSet("time hour clock")
	pathNames   = stemSet("path file filename directory dir folder filepath paths files")
	fileNames   = stemSet("source destination")
	repoNames   = stemSet("repo repository")
	emailNames  = stemSet("email mail recipient to cc bcc sender address attendees")
	linkNames   = stemSet("url uri link website href webpage")
	idNames     = stemSet("id ids number code key sku uuid identifier no ref reference isbn tracking token handle symbol ticker zip postal")
	textNames   = stemSet("query q question search keyword keywords term terms topic prompt phrase")
	wordsNames  = stemSet("text message input content sentence body string")
	sumNames    = stemSet("expression formula equation calculation expr")
	moneyNames  = stemSet("amount price cost budget money value limit total income salary principal")
	titleNames  = stemSet("title name subject label")
	personNames = stemSet("name person user author artist actor director employee player team city location place country region state origin destination room company customer owner driver patient member movie book song title event hotel restaurant language")
	toNames     = stemSet("to target destination dest recipient arrival end until output new")
	fromNames   = stemSet("from origin source src departure start since sender input old")
	// cues maps prepositions to the parameters whose values they introduce.
	cues = map[string]map[string]bool{
		"to":   stemSet("to target destination dest recipient arrival end until output new language value environment to_currency email status limit state"),
		"from": stemSet("from origin source src departure start since sender old from_currency branch"),
		"in":   stemSet("city location place country region state area room environment language directory folder path repo currency zone timezone year unit site office"),
		"into": stemSet("language target directory folder path to destination"),
		"at":   stemSet("time hour place location venue address"), "on": stemSet("date day environment platform topic"),
		"of": stemSet("city country name title owner repo account person author"), "for": stemSet("name person user city location duration minutes hours days date query topic customer patient account event contact"),
		"about": stemSet("query topic subject q question"), "by": stemSet("author artist director user assignee creator"), "with": stemSet("name contact participant"),
		"named": stemSet("name title branch file path pattern folder directory"), "called": stemSet("name title branch path file folder directory"), "titled": stemSet("title subject name"),
		"saying": stemSet("text body message content note comment"), "under": stemSet("path directory folder root"),
	}
)

// stemSet is a set of the stems of words.
func stemSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		for _, part := range texts.Words(w) {
			m[search.Stem(part)] = true
		}
	}
	return m
}

var (
	// operations are the names of tools that calculate with an operator.
	operations = map[byte]string{'+': " add sum plus addition total ", '-': " subtract minus subtraction difference ", '*': " multiply product times multiplication ",
		'/': " divide division quotient ", '^': " power pow ", 'r': " sqrt root "}
	skipped    = set("the a an my our # : = is 's your this of_the")
	introduces = set("for about on of named called with to")
	lead       = set("what whats 's is are the who's tell me about")
	listJoint  = pattern.New(`^[\s,]*(?:and|&)?\s*$`)
)

var (
	finite    = set("is are was were be been has have had got will would should could did does do must may might isn't aren't wasn't about_to")
	adverbial = set("daily weekly monthly yearly hourly family reply speed feed red building meeting king string thing ring")
	openers   = set("open run issue call play")
	articles  = set("a an the my our")
	callVerbs = set("call run use execute invoke")
	polarity  = set("on off in out up down")
	searching = set("search find look lookup list get show")
	common    = set("id name title type status text date result value content descript messag url data") // fields of many tools
)
