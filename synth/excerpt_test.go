package synth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/synth"
)

// prompted is a model that keeps what it is asked.
type prompted struct{ system, user string }

func (p *prompted) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	p.system, p.user = req.System, req.Messages[0].Content
	return llm.Response{Text: "ok"}, nil
}

// reads returns what the model gets to read of each result, without the marks of data.
func reads(question string, outcomes ...plan.Outcome) (texts []string) {
	var model prompted
	synth.New(synth.Options{Model: &model}).Compose(context.Background(), synth.Request{Query: question, Outcomes: outcomes})
	for _, block := range strings.Split(model.user, "<data ")[1:] {
		_, text, _ := strings.Cut(block, "\n")
		text, _, _ = strings.Cut(text, "\n</data>")
		texts = append(texts, strings.TrimPrefix(strings.ReplaceAll(text, "\n| ", "\n"), "| "))
	}
	return texts
}

func text(id, content string) plan.Outcome {
	value, _ := json.Marshal(content)
	return plan.Outcome{Step: plan.Step{ID: id, Server: "s", Tool: "read"}, Sent: json.RawMessage(`{}`), Value: value}
}

// filler returns about size bytes of lines that have nothing to do with any question.
func filler(seed uint64, size int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d %s %s %s %s\n", n, letters(random, 7), letters(random, 9), letters(random, 6), letters(random, 8))
	}
	return b.String()
}

func TestResultIsReadWhole(t *testing.T) {
	const most = 32 << 10
	content := filler(1, 40_000)
	for _, row := range []struct {
		name  string
		sizes []int
		whole []bool
	}{
		{"one", []int{most}, []bool{true}},
		{"one too long", []int{most + 1}, []bool{false}},
		{"several", []int{most / 2, most / 4, most / 4}, []bool{true, true, true}},
		{"one of several too long", []int{most/2 + 1000, most / 4, most / 4}, []bool{false, true, true}},
		{"short ones leave their room to others", []int{10, most - 30, 20}, []bool{true, true, true}},
		{"one takes no room from short ones", []int{39_000, 100, 2000}, []bool{false, true, true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var outcomes []plan.Outcome
			for i, size := range row.sizes {
				outcomes = append(outcomes, text(fmt.Sprintf("s%d", i), content[:size]))
			}
			total := 0
			for i, got := range reads("?", outcomes...) {
				total += len(got)
				if whole := got == content[:row.sizes[i]]; whole != row.whole[i] {
					t.Errorf("result %d: got %d of %d bytes", i, len(got), row.sizes[i])
				}
				if !row.whole[i] && !strings.HasSuffix(got, fmt.Sprintf("of %d bytes shown]", row.sizes[i])) {
					t.Errorf("result %d: got the end %q, want it to say that it is cut", i, got[len(got)-60:])
				}
			}
			if total > most+100*len(row.sizes) || total < min(most, added(row.sizes))*9/10 {
				t.Errorf("got %d bytes, want about %d", total, most)
			}
		})
	}
}

func added(sizes []int) (total int) {
	for _, size := range sizes {
		total += size
	}
	return total
}

// TestPassagesThatMatch: of results that are too long the model reads what matches the question, whatever its language
// and endings, and however far behind.
func TestPassagesThatMatch(t *testing.T) {
	var fillers [4][]string // lines
	for i := range fillers {
		fillers[i] = strings.SplitAfter(strings.NewReplacer("7", "x", "4", "y").Replace(filler(uint64(i), 80_000)), "\n")
	}
	for _, row := range []struct{ name, question, needle string }{
		{"English", "When do the offices open?", "The Office OPENED at nine."},
		{"German", "Welche Häuser wurden verkauft?", "Das HÄUSERVERZEICHNIS nennt drei Verkäufe."},
		{"Russian", "Какие договоры подписаны?", "Договоров не было."},
		{"Greek capitals", "Πού είναι το λιμάνι;", "ΛΙΜΆΝΙ Πειραιά"},
		{"Chinese", "北京办公室在哪里", "我们的北京分部"},
		{"Japanese", "東京の天気", "明日の東京は雨"},
		{"Thai", "ราคาทองคำวันนี้", "วันนี้ปิดตลาด"},
		{"number", "What is order 4711?", "Item 4711 is lost."},
		{"one digit", "Who has room 7?", "see 7 there"},
		{"long number", "find 1234567890123456789", "no 1234567890123456789 here"},
		{"name with underscore", "What is max_parallel?", "set max_parallel to 4"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var outcomes []plan.Outcome
			for i, lines := range fillers {
				lines = slices.Clone(lines)
				lines[len(lines)*(i+1)/5] += row.needle + "\n"
				outcomes = append(outcomes, text(fmt.Sprintf("s%d", i), strings.Join(lines, "")))
			}
			for i, got := range reads(row.question, outcomes...) {
				if !strings.Contains(got, row.needle) {
					t.Errorf("result %d: got no %q in %d bytes", i, row.needle, len(got))
				}
			}
			if got := reads(row.question, outcomes[3])[0]; !strings.Contains(got, row.needle) {
				t.Errorf("a single result: got no %q in %d bytes", row.needle, len(got))
			}
		})
	}
}

// TestRareWordsWeighMore: where a word of the question is everywhere, the rare one decides.
func TestRareWordsWeighMore(t *testing.T) {
	common := strings.Repeat("the report of the month is about the report of the month\n", 1000)
	content := common + "the budget\n" + common
	if got := reads("the budget of the report of the month", text("s1", content))[0]; !strings.Contains(got, "the budget\n") {
		t.Error("got no passage with the rare word")
	}
}

// TestNumbersCountWhole: numbers that begin alike are told apart, as words are not.
func TestNumbersCountWhole(t *testing.T) {
	for _, number := range []string{"9000017", "0000017", "5000017"} {
		other := strings.Repeat("item "+number[:6]+"9 is there, as nobody wonders\n", 1000)
		if got := reads("where is "+number, text("s1", other+"here: "+number+"\n"+other))[0]; !strings.Contains(got, "here: "+number) {
			t.Errorf("%s: got no passage with it", number)
		}
	}
}

// TestPassagesOfJSON: passages of a list end where its elements do.
func TestPassagesOfJSON(t *testing.T) {
	var elements []string
	for i := range 1500 {
		elements = append(elements, fmt.Sprintf(`{"id":%d,"name":"employee %d","office":"office %d"}`, i, i, i%9))
	}
	elements[1210] = `{"id":1210,"name":"Amara Lindqvist","office":"Berlin"}`
	got := reads("Who is in Berlin?", plan.Outcome{Step: plan.Step{ID: "s1"}, Value: json.RawMessage("[" + strings.Join(elements, ",") + "]")})[0]
	if !strings.Contains(got, elements[1210]) {
		t.Error("got no element about Berlin")
	}
	pieces := strings.Split(got[:strings.LastIndex(got, " [cut: ")], "…")
	for i, piece := range pieces[:len(pieces)-1] {
		if i > 0 && !strings.HasPrefix(piece, `{"id":`) || i > 0 && !strings.HasSuffix(piece, `},`) {
			t.Errorf("got the passage %q, want whole elements", piece)
		}
	}
	if len(pieces) < 3 {
		t.Errorf("got %d passages, want the cuts to be marked", len(pieces))
	}
}

// TestPassagesAreVerbatim: what is shown is in the result in the same order, every cut is marked, and the beginning of
// each result is there.
func TestPassagesAreVerbatim(t *testing.T) {
	var outcomes []plan.Outcome
	for i := range 64 {
		outcomes = append(outcomes, text(fmt.Sprintf("s%d", i), filler(uint64(i), 20_000)))
	}
	outcomes[7] = text("s7", strings.Repeat("日本語", 3000))
	outcomes[8] = plan.Outcome{Step: plan.Step{ID: "s8"}, Value: json.RawMessage(`{"id":8,"text":"` + strings.ReplaceAll(filler(8, 20_000), "\n", `\n`) + `"}`)}
	question := "Which are 17 and 170, 1700?"
	total := 0
	read := reads(question, outcomes...)
	for i, got := range read {
		total += len(got)
		got = got[:strings.LastIndex(got, " [cut: ")]
		content := string(outcomes[i].Value)
		if content[0] == '"' {
			_ = json.Unmarshal(outcomes[i].Value, &content)
		}
		if !strings.HasPrefix(content, got[:100-100%3]) {
			t.Errorf("result %d: got %q, want its beginning", i, got[:100])
		}
		if !strings.HasSuffix(strings.TrimSuffix(got, "\n"), "…") {
			t.Errorf("result %d: got the end %q, want the cut to be marked", i, got[len(got)-20:])
		}
		for _, piece := range strings.Split(got, "…") {
			piece = strings.TrimPrefix(piece, "\n")
			at := strings.Index(content, piece)
			if at < 0 {
				t.Fatalf("result %d: got %q, which is not in it, or not behind the piece before", i, piece)
			}
			content = content[at+len(piece):]
		}
	}
	if total > 32<<10+64*60 {
		t.Errorf("got %d bytes", total)
	}
	if again := reads(question, outcomes...); !slices.Equal(again, read) {
		t.Error("got something else the second time")
	}
}

// TestPassagesHoldNoBinary: encoded data takes no room from what can be read.
func TestPassagesHoldNoBinary(t *testing.T) {
	blob := strings.Repeat("iVBORw0KGgoAAAA", 20_000)
	o := plan.Outcome{Step: plan.Step{ID: "s1"}, Value: json.RawMessage(`{"png":"` + blob + `","lines":"` + strings.ReplaceAll(filler(1, 60_000), "\n", `\n`) + `the end is near"}`)}
	got := reads("What is near?", o)[0]
	if strings.Contains(got, "iVBORw0KGgo") || !strings.Contains(got, "300000 bytes of binary data left out") || !strings.Contains(got, "the end is near") {
		t.Errorf("got %d bytes: %.300q", len(got), got)
	}
	o.Value = json.RawMessage(`{"png":"` + blob + `","note":"small"}`)
	if got := reads("?", o)[0]; got != `{"png":"[300000 bytes of binary data left out]","note":"small"}` {
		t.Errorf("got %.300q", got)
	}
}
