package search

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// Questions in Chinese and Japanese find tools that are described in these languages, among them and English tools.
func TestOtherLanguagesAreFound(t *testing.T) {
	const want = 0.8 // mean recall in the first ten
	for _, language := range []string{"zh", "ja"} {
		x := New()
		questions := load(t, x, language)
		load(t, x, "en")
		sum := 0.0
		for question, relevant := range questions {
			hits := ids(x.Search(question, SearchOptions{}))
			found := 0
			for _, id := range relevant {
				if slices.Contains(hits, id) {
					found++
				}
			}
			if found < len(relevant) {
				t.Logf("%s: got %v, want %v among them", question, hits, relevant)
			}
			sum += float64(found) / float64(len(relevant))
		}
		recall := sum / float64(len(questions))
		t.Logf("%s: recall %.3f of %d questions", language, recall, len(questions))
		if len(questions) < 30 || recall < want {
			t.Errorf("%s: recall is %.3f of %d questions, want %.2f of 30", language, recall, len(questions), want)
		}
	}
}

// load adds the tools of a file to an index and returns its questions with their tools.
func load(t *testing.T, x *Index, language string) (questions map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + language + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string][]Tool{}
	questions = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if question, ok := strings.CutPrefix(line, "? "); ok {
			question, relevant, _ := strings.Cut(question, " => ")
			questions[question] = strings.Split(strings.ReplaceAll(relevant, ".", "::"), ", ")
			continue
		}
		head, about, _ := strings.Cut(line, ": ")
		server, name, _ := strings.Cut(head, " ")
		about, params, _ := strings.Cut(strings.TrimSuffix(about, "}"), " {")
		properties := map[string]any{}
		for param := range strings.SplitSeq(params, "; ") {
			if name, label, ok := strings.Cut(param, " "); ok {
				properties[name] = map[string]string{"type": "string", "description": label}
			}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		servers[server] = append(servers[server], tool(server, name, about, string(schema)))
	}
	for server, tools := range servers {
		x.Update(server, tools)
	}
	return questions
}
