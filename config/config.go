// Package config loads and checks the configuration files.
//
// [Load] reads them, [Reload] reads them again, [Check] reports on them, [Watch] detects changes, [Init] writes
// examples, [Import] adds the servers of a desktop client, and [Add], [Remove] and [Disable] plan changes of servers. A
// [Config] is an immutable snapshot: it is replaced as a whole and never changed. Functions keep no state and are safe
// for concurrent use.
package config

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// Config is the configuration of the router.
type Config struct {
	Settings
	Servers  []downstream.ServerConfig // in the order of the files
	Files    []string                  // the files read, in their order
	Warnings []string                  // ignored or ineffective settings, one line each

	sources []source // as read, for Reload
	others  []string // see Options
}

// Settings is the content of settings.yaml.
type Settings struct {
	Listen         string                     `yaml:"listen"`
	AllowedOrigins []string                   `yaml:"allowed_origins"`
	TrustedProxies []string                   `yaml:"trusted_proxies"` // addresses or CIDR prefixes
	Discovery      string                     `yaml:"discovery"`
	NameConflicts  string                     `yaml:"name_conflicts"`
	Router         router.ToolsConfig         `yaml:"router"`
	Proxy          proxy.Config               `yaml:"proxy"`
	Tools          pins.Config                `yaml:"tools"`
	LLM            *LLM                       `yaml:"llm"`    // nil = no model
	Prices         map[string]Price           `yaml:"prices"` // by model
	Query          router.QueryConfig         `yaml:"query"`
	Planner        planner.Config             `yaml:"planner"`
	Execution      downstream.ExecutionConfig `yaml:"execution"`
	Health         downstream.HealthConfig    `yaml:"health"`
	Limits         limit.Config               `yaml:"limits"`
	Auth           auth.Config                `yaml:"auth"`
	RateLimit      limit.RateConfig           `yaml:"rate_limit"`
	Validation     router.ValidationConfig    `yaml:"validation"`
	Shutdown       Shutdown                   `yaml:"shutdown"`
	Log            telemetry.LogConfig        `yaml:"log"`
	Telemetry      telemetry.Config           `yaml:"telemetry"`
	History        history.Config             `yaml:"history"`
	Audit          audit.Config               `yaml:"audit"`
	State          string                     `yaml:"state"`    // folder of state; empty = the user's state folder
	Profiles       map[string]Profile         `yaml:"profiles"` // by name, at /profiles/NAME/mcp
	Policy         []trust.Rule               `yaml:"policy"`   // in the order in which they are judged
	Cluster        Cluster                    `yaml:"cluster"`
	TokenKey       redact.Secret              `yaml:"-"` // NEXUS_TOKEN_KEY, seals the tokens of callers; empty = one in the state folder
}

// Profile is a part of the servers and tools with a path of its own.
type Profile struct {
	Servers   []string       `yaml:"servers"` // empty = all
	Tools     auth.Filter    `yaml:"tools"`
	Resources auth.AllowList `yaml:"resources"`
	Prompts   auth.AllowList `yaml:"prompts"`
	Surface   string         `yaml:"surface"` // router or proxy; empty = router
}

// Limits returns what callers of the profile may use at most.
func (p Profile) Limits() auth.Limits {
	return auth.Limits{Servers: p.Servers, Tools: p.Tools, Resources: p.Resources, Prompts: p.Prompts}
}

// Surfaces of profiles.
const (
	SurfaceRouter = "router"
	SurfaceProxy  = "proxy"
)

// LLM names the models. Without Synthesizer the planner's model is used. If only Embeddings or UseClient are set,
// Planner is empty.
type LLM struct {
	Planner     llm.Config            `yaml:"planner"`
	Synthesizer *llm.Config           `yaml:"synthesizer"`
	Embeddings  *llm.EmbeddingsConfig `yaml:"embeddings"` // nil = tools are ranked by words only
	UseClient   bool                  `yaml:"use_client"` // without a model, use the sampling of clients
}

// Price is the price of a million tokens of a model, in any currency.
type Price struct {
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
}

// Of returns the cost of tokens.
func (p Price) Of(input, output int) float64 {
	return (float64(input)*p.Input + float64(output)*p.Output) / 1e6
}

// Plans reports whether there is a model that plans and answers. l may be nil.
func (l *LLM) Plans() bool { return l != nil && l.Planner.BaseURL != "" }

// Shutdown configures the graceful shutdown.
type Shutdown struct {
	Grace time.Duration `yaml:"grace"`
}

// StateFolder returns the folder for state that outlives a restart: State, else the user's state folder.
func (s *Settings) StateFolder() (string, error) {
	if s.State != "" {
		return filepath.Abs(s.State)
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "agenticnexus"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("there is no home folder; set state")
	}
	return filepath.Join(home, ".local", "state", "agenticnexus"), nil
}

// Default returns the documented defaults, without servers.
func Default() Config {
	return Config{Settings: Settings{
		Listen:        "127.0.0.1:8002",
		Discovery:     downstream.DiscoveryLazy,
		NameConflicts: catalog.ConflictNamespace,
		Router:        router.DefaultTools(),
		Proxy:         proxy.Default(),
		Tools:         pins.Config{Pin: pins.Warn},
		Query:         router.DefaultQuery(),
		Planner:       planner.Default(),
		Execution:     downstream.DefaultExecution(),
		Health:        server.DefaultHealth(),
		Limits:        limit.Default(),
		RateLimit:     limit.DefaultRate(),
		Validation:    router.DefaultValidation(),
		Shutdown:      Shutdown{Grace: 30 * time.Second},
		Log:           telemetry.DefaultLog(),
		History:       history.Default(),
		Audit:         audit.Default(),
		Cluster:       Cluster{Name: "agenticnexus"},
	}}
}
