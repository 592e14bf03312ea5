package llm_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// TestLiveModel asks a real endpoint for a text, for JSON and for calls, if NEXUS_LIVE_MODEL names a model.
func TestLiveModel(t *testing.T) {
	model := os.Getenv("NEXUS_LIVE_MODEL")
	if model == "" {
		t.Skip("NEXUS_LIVE_MODEL is not set: no live endpoint is asked; see docs/testing.md")
	}
	cfg := llm.Default()
	cfg.Model, cfg.API = model, cmp.Or(os.Getenv("NEXUS_LIVE_API"), llm.APIChat)
	if cfg.API == llm.APIAnthropic {
		cfg.BaseURL = llm.AnthropicURL
	}
	cfg.BaseURL = cmp.Or(os.Getenv("NEXUS_LIVE_URL"), cfg.BaseURL)
	cfg.APIKey, cfg.Timeout = redact.Secret(os.Getenv("NEXUS_LIVE_KEY")), 2*time.Minute
	c := llm.New(cfg, llm.Options{})
	defer c.Close()
	c.Probe(t.Context())
	if s := c.Status(); s.State == llm.StateRejected || s.State == llm.StateFailing {
		t.Fatalf("the endpoint is %s: %s", s.State, s.LastError)
	}

	text, err := c.Complete(t.Context(), ask("Reply with the word ready and nothing else."))
	if err != nil || !strings.Contains(strings.ToLower(text.Text), "ready") || text.Usage.OutputTokens == 0 {
		t.Errorf("text: got %q with usage %+v, %v", text.Text, text.Usage, err)
	}

	req := ask(`Reply with a JSON object whose member z is "left" and whose member a is "right".`)
	req.Schema = schema
	structured, err := c.Complete(t.Context(), req)
	var object map[string]string
	if err != nil || json.Unmarshal([]byte(structured.Text), &object) != nil || object["z"] != "left" {
		t.Errorf("JSON: got %q, %v", structured.Text, err)
	}

	req = ask("What is the weather in Rome and in Oslo? Call the tool for each.")
	req.Tools = []llm.Tool{{
		Name: "get_weather", Description: "Get the weather of a city",
		Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}}
	called, err := c.Complete(t.Context(), req)
	if err != nil || len(called.Calls) == 0 || called.Calls[0].Name != "get_weather" || !json.Valid([]byte(called.Calls[0].Arguments)) {
		t.Errorf("tools: got %+v, %v", called.Calls, err)
	}
	t.Logf("%s at %s: %q, %q, %+v, %d and %d tokens", cfg.API, cfg.BaseURL, text.Text, structured.Text, called.Calls,
		called.Usage.InputTokens, called.Usage.OutputTokens)
}
