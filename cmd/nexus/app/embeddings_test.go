package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/router"
)

// With an embedding model the tools come by meaning; when it fails they come by their words, and one line says so.
func TestEmbeddings(t *testing.T) {
	const key = "sk-embeddings-1234567890"
	for _, row := range []struct {
		name  string
		query string
		reply llmtest.Reply
		first string // of the tools found
		fails bool
	}{
		{name: "by meaning", query: "tell everyone", reply: llmtest.Reply{Embed: about("circular")}, first: "peer__post_circular"},
		{name: "endpoint fails", query: "send mail to everyone", reply: llmtest.Reply{Status: http.StatusInternalServerError, Text: "no key like " + key}, first: "peer__send_mail", fails: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.New(t)
			m.When(llmtest.Request.Embeddings, row.reply)
			r, _ := withPeer(t, nil, func(o *app.Options) {
				o.Config.LLM = &config.LLM{Embeddings: &llm.EmbeddingsConfig{BaseURL: m.BaseURL, APIKey: key, Model: "stub", Timeout: 5 * time.Second}}
			},
				textTool("send_mail", `"description":"Send mail",`+object, "sent"),
				textTool("post_circular", `"description":"Send a circular by mail",`+object, "posted"))
			c := r.dial("", nil)
			for range 2 {
				var found struct{ Tools []router.FoundTool }
				c.structured("search_available_tools", c.call("search_available_tools", fmt.Sprintf(`{"query":%q}`, row.query), ""), &found)
				if len(found.Tools) != 2 || found.Tools[0].Name != row.first {
					t.Errorf("found: got %+v, want two tools, first %s", found.Tools, row.first)
				}
			}
			if got := len(m.Requests()); got != 2 {
				t.Errorf("requests: got %d, want one of the tools and one of the question, for the vectors are kept or the endpoint rests", got)
			}
			if got := c.query(`{"query":"send mail to everyone"}`).Plan.Source; got != "rules" {
				t.Errorf("plan: got one by %q, want the rules", got)
			}
			if row.fails {
				r.logs.want(t, "Ranking tools by words alone")
			}
			if strings.Contains(r.logs.String(), key) {
				t.Error("the key is in the log")
			}
		})
	}
}

// about embeds a text by whether it contains the word or says everyone.
func about(word string) func(string) []float32 {
	return func(text string) []float32 {
		if strings.Contains(text, word) || strings.Contains(text, "everyone") {
			return []float32{1, 0}
		}
		return []float32{0, 1}
	}
}
