package router_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

// A client that offers sampling is asked, and not asked again once it has refused.
func TestSampling(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"find a hotel room in Oslo"}}}`
	offers := func(o *router.Options, _ *downstream.Options) { o.Models.Sampling = true }
	says := func(text, rest string) string {
		quoted, _ := json.Marshal(text)
		return fmt.Sprintf(`"result":{"role":"assistant","content":{"type":"text","text":%s}%s}`, quoted, rest)
	}
	for _, row := range []struct {
		name, caps, answer     string
		asks                   int
		source, model, warning string
	}{
		{"it plans and answers", `{"sampling":{}}`, says(`[]`, `,"model":"client-1"`), 2, "model", "client-1", ""},
		{"it has no name", `{"sampling":{}}`, says(`[]`, ``), 2, "model", "the client's", ""},
		{"it refuses", `{"sampling":{}}`, `"error":{"code":-1,"message":"The user said no"}`, 1, "rules", "the client's", "the client refused sampling: The user said no"},
		{"it stops early", `{"sampling":{}}`, says(`[]`, `,"stopReason":"maxTokens"`), 2, "rules", "", "reached its length limit"},
		{"it is not offered", `{}`, ``, 0, "rules", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit(t, offers)
			s := k.sessionOf(row.caps)
			s.answer = row.answer
			lines := s.ask(question)
			asks := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "sampling/createMessage") }))
			var m struct {
				Result struct {
					StructuredContent struct {
						Plan  struct{ Source string }
						Usage struct {
							Planner struct{ Model string }
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
				t.Fatal(err)
			}
			got := m.Result.StructuredContent
			if asks != row.asks || got.Plan.Source != row.source || row.model != "" && got.Usage.Planner.Model != row.model {
				t.Errorf("got %d questions and %+v, want %d, a plan by %s and the model %s", asks, got, row.asks, row.source, row.model)
			}
			if answer := lines[len(lines)-1]; !strings.Contains(answer, row.warning) {
				t.Errorf("got %s, want %q in it", answer, row.warning)
			}
		})
	}
}
