package config_test

import (
	"slices"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

func TestCompare(t *testing.T) {
	was, now := config.Default().Settings, config.Default().Settings
	if got := config.Compare(was, now); got != nil {
		t.Errorf("equal settings: got %v, want nothing", got)
	}
	now.Listen = "127.0.0.1:1"
	now.Limits.Sessions++
	now.Auth.APIKeys = []auth.KeyConfig{{Name: "a"}}
	now.LLM = &config.LLM{Planner: llm.Default()}
	if got, want := config.Compare(was, now), []string{"listen", "llm", "limits.sessions", "auth.api_keys"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	was.LLM = &config.LLM{Planner: llm.Default()}
	was.LLM.Planner.APIKey = "secret"
	if got := config.Compare(was, now); !slices.Contains(got, "llm.planner.api_key") || slices.Contains(got, "llm") {
		t.Errorf("got %v, want the key of the planner among them", got)
	}
}
