package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// The examples change nothing, and are not what a router reads that is started in a clone.
func TestExamplesAreDefaults(t *testing.T) {
	cfg := load(t, environment(), "examples")
	for _, s := range cfg.Servers {
		if !s.Disabled {
			t.Errorf("example server %s is not disabled", s.Name)
		}
	}
	if len(cfg.Servers) == 0 || len(cfg.Warnings) > 0 {
		t.Errorf("got %d servers and warnings %q, want some and none", len(cfg.Servers), cfg.Warnings)
	}
	if !reflect.DeepEqual(cfg.Settings, config.Default().Settings) {
		t.Errorf("settings = %+v, want the defaults", cfg.Settings)
	}
}

// Taking the comment signs away must change nothing, apart from there being a model.
func TestExampleSettingsUncommented(t *testing.T) {
	example, err := os.ReadFile("examples/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(`(?m)^# `).ReplaceAllString(string(example), "")
	cfg := load(t, environment("OPENAI_API_KEY", "sesame"), filepath.Join(write(t, "settings.yaml", open), "settings.yaml"))
	want := llm.Default()
	want.APIKey = "sesame"
	if cfg.LLM == nil || !reflect.DeepEqual(cfg.LLM.Planner, want) || !reflect.DeepEqual(cfg.LLM.Synthesizer, &want) {
		t.Errorf("llm = %+v, want twice %+v", cfg.LLM, want)
	}
	embeddings := llm.DefaultEmbeddings()
	embeddings.APIKey = "sesame"
	if cfg.LLM.Embeddings == nil || *cfg.LLM.Embeddings != embeddings {
		t.Errorf("llm.embeddings = %+v, want %+v", cfg.LLM.Embeddings, embeddings)
	}
	cfg.LLM = nil
	if cfg.Telemetry.Traces == nil || cfg.Telemetry.Metrics == nil {
		t.Errorf("telemetry = %+v, want both set", cfg.Telemetry)
	}
	cfg.Telemetry = config.Default().Telemetry
	for _, empty := range []*[]string{&cfg.AllowedOrigins, &cfg.TrustedProxies} {
		if len(*empty) == 0 {
			*empty = nil
		}
	}
	if len(cfg.Auth.APIKeys) == 0 {
		cfg.Auth.APIKeys = nil
	}
	if got, want := fmt.Sprintf("%+v", cfg.Settings), fmt.Sprintf("%+v", config.Default().Settings); got != want {
		t.Errorf("settings =\n%s\nwant the defaults\n%s", got, want)
	}
	checkMentioned(t, "examples/settings.yaml", open, reflect.TypeFor[config.Settings]())
}

// checkMentioned fails for every yaml key of a type that text does not mention.
func checkMentioned(t *testing.T, file, text string, of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for i := range of.NumField() {
		key := of.Field(i).Tag.Get("yaml")
		if key == "-" {
			continue
		}
		if !regexp.MustCompile(`\b` + key + `\b`).MatchString(text) {
			t.Errorf("%s does not mention %s", file, key)
		}
		checkMentioned(t, file, text, of.Field(i).Type)
	}
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "config")
	files, err := config.Init(dir)
	want := []string{filepath.Join(dir, "servers.yaml"), filepath.Join(dir, "settings.yaml")}
	if err != nil || !slices.Equal(files, want) {
		t.Fatalf("Init = %q, %v; want %q", files, err, want)
	}
	cfg := load(t, environment(), dir)
	if cfg.Proxy.ResourceNames != proxy.ResourceScheme {
		t.Errorf("resource_names = %s, want scheme", cfg.Proxy.ResourceNames)
	}
	cfg.Proxy.ResourceNames = proxy.ResourcePrefix
	if !reflect.DeepEqual(cfg.Settings, config.Default().Settings) {
		t.Errorf("the other settings = %+v, want the defaults", cfg.Settings)
	}

	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	_, err = config.Init(dir)
	if err == nil || !strings.Contains(err.Error(), files[1]) {
		t.Errorf("Init over settings.yaml = %v, want an error that names it", err)
	}
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("Init wrote servers.yaml although it failed")
	}
}

func TestInitBesideOtherFormats(t *testing.T) {
	folder := write(t, "servers.json", "{}")
	if files, err := config.Init(folder); err == nil || len(files) > 0 {
		t.Errorf("Init = %q, %v; want an error, because servers.json is there", files, err)
	}
}

func TestInitInAFile(t *testing.T) {
	folder := write(t, "file", "")
	if _, err := config.Init(filepath.Join(folder, "file")); err == nil {
		t.Error("Init in a file = nil, want an error")
	}
}
