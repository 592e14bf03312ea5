package rules

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// class is what a parameter of text is about, by its name.
type class int

const (
	classText class = iota
	classQuery
	classPlace
	classID
)

var (
	queryStems = stemSet("query keyword keywords search topic question prompt term q subject")
	placeStems = stemSet("location city place address area region destination origin where town country state airport station timezone")
	idStems    = stemSet("id uuid identifier sku isbn code number")
	aboutCues  = []string{"about", "on", "for"}
	placeCues  = []string{"in", "at", "from", "to", "near", "of", "for", "around"}
)

func (q param) class() class {
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(q.stems, func(s string) bool { return set[s] })
	}
	switch {
	case has(placeStems), (has(fromStems) || has(toStems)) && len(q.stems) == 1 && (q.about["citi"] || q.about["locat"] || q.about["airport"] || q.about["station"]):
		return classPlace
	case len(q.stems) > 0 && idStems[q.stems[len(q.stems)-1]]:
		return classID
	case has(queryStems):
		return classQuery
	case q.about["locat"] && kindOf(q.Schema) == "string" && strings.Contains(strings.ToLower(clip(q.Description, 40)), "location"):
		return classPlace
	}
	return classText
}

// take adds what a value could give a parameter.
func (l *filler) take(out []choice, q param, v values.Value) []choice {
	fitted, ok := v.Fit(q.Property)
	if !ok {
		return out
	}
	text := v.Kind == values.Name || v.Kind == values.Phrase && v.Label == "" || v.Kind == values.Phrase && (v.Label == "about" || v.Label == "rest")
	if text && (q.moment() || slices.Contains(q.stems, "currenc") && (len(v.Text) != 3 || strings.ToUpper(v.Text) != v.Text)) {
		return out
	}
	if (v.Kind == values.Name || v.Kind == values.Phrase) && (l.labels(v) || q.identifies() && kindOf(q.Schema) == "string" && v.Label == "") || v.Kind == values.Name && q.identifies() {
		return out
	}
	c := choice{value: fitted.Value, score: l.cue(q, v.Start, v.End) + side(q, v), start: v.Start, end: v.End}
	c.unclear = fitted.Ambiguous && v.Kind != values.Percent && !strings.Contains(v.Text, ":")
	switch kind := kindOf(q.Schema); kind {
	case "integer", "number":
		c.score += 1.25*fitted.Score + l.counts(q, v)
		if first, last := digits(v.Text); last > 0 { // the unit may say something else: "250 dollars"
			c.start, c.end = v.Start+first, v.Start+last
		}
	case "boolean":
		c.score++
	default:
		c.score += 2.5*fitted.Score + l.suits(q, v)
		if first, last := digits(v.Text); fitted.Value == any(v.Unit) && last > 0 { // a currency, without the amount
			c.score += 1.5
			if c.start = v.Start + last; last == len(v.Text) {
				c.start, c.end = v.Start, v.Start+first
			}
		}
		if fitted.Score >= 0.9 {
			c.score += 0.75
		}
		if q.exemplifies(v.Text) {
			c.score += 1.5
			c.named = true
		}
		if name, ok := fitted.Value.(string); ok && (v.Kind == values.Name || v.Kind == values.Phrase) && q.class() == classPlace && !l.apart(q) {
			c.value = q.place(name)
		}
	}
	return append(out, c)
}

// digits returns where the number of a text begins and ends; the end is 0 if there is none.
func digits(text string) (first, end int) {
	first = strings.IndexFunc(text, unicode.IsDigit)
	if first > 0 && text[first-1] == '-' {
		first--
	}
	return first, strings.LastIndexFunc(text, unicode.IsDigit) + 1
}

// exampleLead is how descriptions begin to name values.
var exampleLead = regexp.MustCompile(`(?i)\b(?:e\.?g|such as|for example|for instance|like|examples?|one of|either)\b|[:('"]`)

// exemplifies reports whether a parameter's description names a value: "City: Berlin, Lisbon or Toronto".
func (q param) exemplifies(text string) bool {
	about := clip(q.Description, 600)
	lead := exampleLead.FindStringIndex(about)
	if lead == nil || len(text) < 2 {
		return false
	}
	about, text = strings.ToLower(about), strings.ToLower(text)
	for from := lead[1]; from < len(about); {
		i := strings.Index(about[from:], text)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(text)
		letter := func(at int) bool { return at >= 0 && at < len(about) && about[at] >= 'a' && about[at] <= 'z' }
		if !letter(start-1) && !letter(end) {
			return true
		}
		from = end
	}
	return false
}

var (
	moneyStems = stemSet("price amount cost budget salary income revenue payment principal loan fee value balance investment deposit money fund")
	yearStems  = stemSet("year season start end from to since until")
	shareStems = stemSet("rate percent percentage ratio discount tax interest share yield probability")
)

// counts is how well the kind of a number suits a parameter that is a number.
func (l *filler) counts(q param, v values.Value) float64 {
	says := func(set map[string]bool) bool {
		return slices.ContainsFunc(q.stems, func(s string) bool { return set[s] })
	}
	score := 0.0
	switch v.Kind {
	case values.Money:
		score = -0.5
		if says(moneyStems) {
			score = 1.5
		}
	case values.Percent:
		if says(shareStems) {
			score = 1
		}
	case values.Number:
		if year := len(v.Text) == 4 && (v.Text[0] == '1' || v.Text[0] == '2'); year {
			score = -0.8
			if says(yearStems) {
				score = 2
			}
		}
		if !strings.ContainsAny(v.Text, "0123456789") { // "two numbers, 36 and 48"
			score = -0.2
			if l.digits > 0 && (v.Number == json.Number(strconv.Itoa(l.digits)) || v.Number == "1") {
				score = -2
			}
		}
	}
	return score
}

// moment reports whether a parameter is a date or time, which no other words are.
func (q param) moment() bool {
	return slices.ContainsFunc([]string{"date", "time", "datetim", "timestamp"}, func(s string) bool { return slices.Contains(q.stems, s) }) &&
		!slices.Contains(q.stems, "zone") || strings.Contains(q.Description, "YYYY-MM-DD") || strings.Contains(q.Description, "HH:MM")
}

// suits is how well the kind of a value suits a parameter that takes a text.
func (l *filler) suits(q param, v values.Value) float64 {
	c := q.class()
	if v.Cue == "named" && v.Kind >= values.Path {
		if slices.ContainsFunc(q.stems, func(s string) bool { return nameStems[s] }) {
			return 2
		}
		if v.Kind > values.Path {
			return 0.8
		}
	}
	switch v.Kind {
	case values.Number:
		if c == classID {
			return 0.5
		}
		return -1
	case values.Ordinal, values.Percent, values.Money, values.Quantity, values.Duration:
		return -1
	case values.Quotation:
		if c == classPlace && !slices.Contains(placeCues, v.Cue) {
			return -1.5
		}
		return 0.6
	case values.Name:
		switch {
		case l.listed(q, v.Text), !strings.Contains(v.Text, " ") && l.f.words[search.Stem(strings.ToLower(v.Text))]:
			return -2
		case v.Label == "region" && (c != classPlace || slices.Contains(q.stems, "citi") && !strings.Contains(q.Description, ",")):
			return -2
		case v.Label == "region":
			return 2
		case regionOf[strings.ToLower(v.Text)] != "" && (slices.Contains(q.stems, "state") || slices.Contains(q.stems, "countri")):
			return -0.7
		case c == classPlace && slices.Contains(placeCues, v.Cue):
			return 1.4
		case c == classPlace && v.Cue == "":
			return -0.4
		case c == classID:
			return -1
		case c != classPlace && strings.HasSuffix(strings.TrimRight(l.a.text[:v.Start], " "), ",") && regionCode[strings.ToLower(v.Text)] != "", len(v.Text) == 2 && c != classPlace && regionOf[strings.ToLower(v.Text)] != "":
			return -2
		case (v.Cue == "in" || v.Cue == "at") && slices.ContainsFunc(l.f.params, func(o param) bool { return o.class() == classPlace }):
			return -1
		case v.Cue != "":
			return 0.3
		}
	case values.Phrase:
		switch {
		case l.listed(q, v.Text), strings.HasPrefix(v.Label, "=") && v.Label[1:] != q.Name:
			return -2
		case v.Label == "rest" && c != classQuery:
			return -3
		case v.Label == "rest":
			return 0.8
		case v.Label != "" && v.Label != "about":
			return 1
		case c == classQuery && slices.Contains(aboutCues, v.Cue):
			return 0.9
		case c == classID, c == classPlace && !slices.Contains(placeCues, v.Cue):
			return -2
		case c != classQuery && v.Label == "about":
			return -1.2
		case c == classQuery:
			return -0.2
		case v.Cue != "":
			return -0.4
		}
		return -0.8
	case values.Identifier:
		switch {
		case v.Label == "owner" || v.Label == "repo":
			if slices.Contains(q.stems, v.Label) {
				return 2
			}
			return -2
		case c == classID:
			return 0.5
		}
	case values.Expression:
		return 1.5
	case values.Date, values.DateTime, values.Time, values.DateRange, values.TimeRange:
		if !slices.ContainsFunc(q.stems, func(s string) bool { return momentStems[s] }) && q.Format == "" {
			return -2
		}
		return 0.5
	}
	return 0
}

// labels reports whether a text only names parameters: "the ID".
func (l *filler) labels(v values.Value) bool {
	return !slices.ContainsFunc(readWords(v.Text, 0, len(v.Text), l.a.lang), func(w word) bool {
		return w.weight == 1 && !w.has("ip") && !slices.ContainsFunc(w.stems, func(s string) bool { return l.f.shared[s] > 0 })
	})
}

// apart reports whether a tool takes the region of a place as a parameter of its own.
func (l *filler) apart(q param) bool {
	return slices.ContainsFunc(l.f.params, func(o param) bool {
		return o.Name != q.Name && (slices.Contains(o.stems, "state") || slices.Contains(o.stems, "countri"))
	}) && !slices.Contains(q.stems, "state")
}

// listed reports whether a text is a choice of another parameter: "in Celsius" is no place.
func (l *filler) listed(q param, text string) bool {
	return slices.ContainsFunc(l.f.params, func(o param) bool {
		return o.Name != q.Name && slices.ContainsFunc(choices(o.Schema, maxEnum), func(c string) bool { return strings.EqualFold(c, text) })
	})
}

var nameStems = stemSet("name title pattern query search")

var momentStems = stemSet("date time day datetime when deadline start end begin from to until since checkin checkout departure arrival return birthday year month period")

var (
	fromStems = stemSet("from start origin source begin initial departure since low lower min minimum first pickup base old")
	toStems   = stemSet("to end destination target final arrival until high upper max maximum second last dropoff new return checkout")
)

// side weighs on which side of a pair a value and a parameter are: "from A to B".
func side(q param, v values.Value) float64 {
	of := func(from, to bool) int {
		switch {
		case from == to:
			return 0
		case from:
			return 1
		}
		return -1
	}
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(q.stems, func(s string) bool { return set[s] })
	}
	param := of(has(fromStems), has(toStems))
	value := of(slices.Contains([]string{"from", "since", "between", "after", "over"}, v.Cue), slices.Contains([]string{"to", "until", "before", "under"}, v.Cue))
	return 1.5 * float64(param*value)
}

// cue weighs the words around a part of the question against a parameter: "a radius of 5" speaks for radius, "for 5 years"
// for time_in_years. Nearer words count more, the parameter's name more than its description.
func (l *filler) cue(q param, start, end int) float64 {
	words := l.a.words
	at, _ := slices.BinarySearchFunc(words, start, func(w word, at int) int { return w.start - at })
	best, weight := 0.0, 1.0
	for i, content, edge := at-1, 0, start; i >= 0 && content < 4 && at-i < 9; i-- {
		between := l.a.text[words[i].end:max(edge, words[i].end)]
		edge = words[i].start
		if strings.ContainsAny(between, ".?!;") || i < at-1 && numeral(words[i+1]) {
			break
		}
		if strings.Contains(between, ",") {
			weight *= 0.6
		}
		best = max(best, weight*l.names(q, words[i]))
		switch {
		case words[i].weight > 0:
			content++
			weight *= 0.75
		case words[i].lower != "of" && slices.Contains(placeCues, words[i].lower): // "cuisine in Seattle"
			weight *= 0.6
		}
	}
	for _, w := range words { // the unit of a number, or "Hotel Paradise" for a hotel
		if w.start >= start && w.end <= end {
			best = max(best, 0.6*l.names(q, w))
		}
	}
	weight = 0.8
	if start < len(l.a.text) && !unicode.IsDigit(rune(l.a.text[start])) {
		weight = 0.4 // "the tennis player": the word after a name says less than the one before
	}
	after, _ := slices.BinarySearchFunc(words, end, func(w word, at int) int { return w.start - at })
	for i, content, edge := after, 0, end; i < len(words) && content < 2 && i-after < 4; i++ {
		if strings.Trim(l.a.text[min(edge, words[i].start):words[i].start], " \"'") != "" || words[i].lower == "and" || words[i].lower == "or" || numeral(words[i]) {
			break
		}
		edge = words[i].end
		best = max(best, weight*l.names(q, words[i]))
		if words[i].weight > 0 {
			content++
		}
		weight *= 0.7
	}
	return best
}

// names is how well one word of the question names a parameter. A word that several parameters or the tool itself have in
// common says little.
func (l *filler) names(q param, w word) float64 {
	best := 0.0
	if numeral(w) {
		return 0
	}
	for _, s := range w.stems {
		switch {
		case slices.Contains(q.stems, s):
			v := 3 / float64(max(1, l.f.shared[s]))
			if w.weight == 0 {
				v = min(v, 0.5)
			}
			best = max(best, v)
		case w.weight == 0:
		case q.about[s] && l.f.words[s]:
			best = max(best, 0.5)
		case q.about[s]:
			best = max(best, 1.2/float64(max(1, l.describing(s))))
		case slices.ContainsFunc(q.stems, func(n string) bool {
			return shortens(n, s) || len(n) >= 5 && shortens(s, n) || l.p.thesaurus.Related(s, n) && l.f.shared[s] == 0
		}):
			best = max(best, 2)
		}
	}
	return best
}

// describing is how many parameters' descriptions have a stem.
func (l *filler) describing(stem string) int {
	n := 0
	for _, q := range l.f.params {
		if q.about[stem] {
			n++
		}
	}
	return n
}

// shortens reports whether a is a shortened b, as in "temp" and "temperature".
func shortens(a, b string) bool { return len(a) >= 3 && len(b) > len(a) && b[:len(a)] == a }

// cut returns the phrases of ordinary words that could be texts: what lies between function words and other values,
// without words at the ends that only say which tool is meant; and what is asked about, up to the end of a clause.
func (l *filler) cut() []values.Value {
	var out []values.Value
	words := l.a.words
	covered := func(w word) bool {
		return slices.ContainsFunc(l.a.values, func(v values.Value) bool { return v.Start < w.end && w.start < v.End })
	}
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && words[j].weight > 0 && !covered(words[j]) && (j == i || strings.Trim(l.a.text[words[j-1].end:words[j].start], " -") == "") {
			j++
		}
		if j == i {
			i++
			continue
		}
		from, to := i, j
		for from < to && l.explains(words[from]) {
			from++
		}
		for to > from && l.explains(words[to-1]) {
			to--
		}
		if from < to {
			out = append(out, l.phrase(from, to))
		}
		if from == i { // "Amazon rainforest"
			for _, v := range l.a.values {
				if v.Kind == values.Name && strings.TrimSpace(l.a.text[v.End:max(v.End, words[i].start)]) == "" && v.End < words[i].start && to > from {
					v.End, v.Text = words[to-1].end, l.a.text[v.Start:words[to-1].end]
					out = append(out, v)
				}
			}
		}
		i = j
	}
	for i := 0; i < len(words); i++ { // all that a search may be for
		if words[i].weight > 0 && !search.RequestVerb(words[i].lower) {
			v := l.phrase(i, l.clauseEnd(i))
			v.Label = "rest"
			out = append(out, v)
			break
		}
	}
	for i := 1; i < len(words); i++ { // "with content go to sleep at nine"
		k := slices.IndexFunc(l.f.params, func(q param) bool {
			return q.Required && kindOf(q.Schema) == "string" && len(q.stems) == 1 && words[i-1].has(q.stems[0]) && !genericWords[q.stems[0]]
		})
		if k >= 0 && !functionWords[words[i].lower] && !introducing[words[i].lower] && !l.explains(words[i]) && strings.TrimSpace(l.a.text[words[i-1].end:words[i].start]) == "" {
			v := l.phrase(i, l.clauseEnd(i))
			v.Label = "=" + l.f.params[k].Name
			inside := func(o values.Value) bool {
				return (o.Kind == values.Quotation || o.Kind == values.Name || o.Kind == values.Identifier) && o.Start < v.End && v.Start < o.End
			}
			if !slices.ContainsFunc(l.a.values, inside) {
				out = append(out, v)
			}
		}
	}
	for i := 1; i < len(words); i++ {
		if slices.Contains(aboutCues, l.cueAt(i)) && words[i].weight > 0 {
			if v := l.phrase(i, l.clauseEnd(i)); !slices.ContainsFunc(out, func(o values.Value) bool { return o.Start == v.Start && o.End == v.End }) {
				v.Label = "about"
				out = append(out, v)
			}
		}
	}
	return out
}

// functionWords are those that may follow the name of a parameter without being its value.
var functionWords = wordSet("of is are was to for in on at from with by and or the a an as that which who be")

// clauseEnd is the word after the last one before the next mark.
func (l *filler) clauseEnd(i int) int {
	for i++; i < len(l.a.words) && !strings.ContainsAny(l.a.text[l.a.words[i-1].end:l.a.words[i].start], ".?!;,"); i++ {
	}
	return i
}

// phrase is a value of the words [i,j).
func (l *filler) phrase(i, j int) values.Value {
	start, end := l.a.words[i].start, l.a.words[j-1].end
	return values.Value{Kind: values.Phrase, Start: start, End: end, Text: l.a.text[start:end], Cue: l.cueAt(i)}
}

// cueOf is the function word before a part of the question.
func (l *filler) cueOf(start int) string {
	return l.cueAt(slices.IndexFunc(l.a.words, func(w word) bool { return w.start >= start }))
}

// cueAt is the function word before word i, articles skipped.
func (l *filler) cueAt(i int) string {
	for i--; i >= 0 && l.a.words[i].weight == 0; i-- {
		switch w := l.a.words[i].lower; {
		case slices.Contains(placeCues, w) || slices.Contains(aboutCues, w) || w == "with" || w == "by" || w == "into":
			if w == "into" {
				return "to"
			}
			return w
		case slices.Contains([]string{"a", "an", "the", "my", "our", "your", "this", "that", "some", "any"}, w):
		default:
			return ""
		}
	}
	return ""
}

// explains reports whether a word says which tool or parameter is meant rather than what to give it.
func (l *filler) explains(w word) bool {
	if search.RequestVerb(w.lower) {
		return true
	}
	if slices.ContainsFunc(l.f.params, func(q param) bool { return q.exemplifies(w.lower) }) {
		return false
	}
	return slices.ContainsFunc(w.stems, func(s string) bool {
		return l.f.words[s] || slices.ContainsFunc(l.f.params, func(q param) bool { return slices.Contains(q.stems, s) }) ||
			slices.ContainsFunc(l.f.name, func(n string) bool { return l.p.related(s, n) })
	})
}
