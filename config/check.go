package config

import (
	"errors"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// checker checks a configuration. It keeps the first mistake; later checks may then be about values that were never
// set.
type checker struct {
	env      func(string) (string, bool)
	programs bool     // look at this machine: warn about commands that do not exist, and check the audit log
	strict   bool     // a variable of a server that is not set is a mistake
	used     *Config  // the configuration to replace; nil = none
	others   []string // names of servers that no file configures

	docs     []*document
	planned  map[string][]byte // texts that files are to have
	names    map[string]string // server name → where it is defined
	warnings []string
	err      error
}

func newChecker(env func(string) (string, bool)) *checker {
	if env == nil {
		env = os.LookupEnv
	}
	return &checker{env: env, names: map[string]string{}}
}

// find returns the value at a path in the last file that has it. If none has it, the token is that of the innermost
// value around it.
func (c *checker) find(path string) (doc *document, n ast.Node, at *token.Token) {
	for _, d := range slices.Backward(c.docs) {
		n, token, found := d.find(path)
		if found {
			return d, n, token
		}
		if doc == nil && token != nil {
			doc, at = d, token
		}
	}
	return doc, nil, at
}

// given reports whether a file has a value at a path.
func (c *checker) given(path string) bool {
	_, n, _ := c.find(path)
	return n != nil
}

// fail records that the value at a path is wrong.
func (c *checker) fail(path, format string, args ...any) {
	doc, _, at := c.find(path)
	if doc == nil {
		doc = &document{}
	}
	c.failAt(mistake(doc.name, at, path+": "+format, args...))
}

func (c *checker) failAt(err *Error) {
	if c.err == nil {
		c.err = err
	}
}

// warn records a warning about the value at a path.
func (c *checker) warn(path, format string, args ...any) {
	doc, _, at := c.find(path)
	if doc == nil {
		doc = &document{}
	}
	c.warnAt(mistake(doc.name, at, format, args...))
}

func (c *checker) warnAt(m *Error) { c.warnings = append(c.warnings, m.Error()) }

// got returns the value at a path as written, for a message.
func (c *checker) got(path string) string {
	if doc, n, _ := c.find(path); n != nil {
		return doc.quoted(n)
	}
	return "none"
}

func (c *checker) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail(path, "want %s, got %s", orList(allowed, "or"), c.got(path))
	}
}

func (c *checker) atLeast(path string, value, least int) {
	if value < least {
		c.fail(path, "must be at least %d, got %s", least, c.got(path))
	}
}

// patterns checks shell patterns.
func (c *checker) patterns(list string, patterns []string) {
	for i, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			c.fail(at(list, i), "is not a valid pattern; want a name, where * matches anything")
		}
	}
}

// limits checks the rights that the mapping at a path gives. unknown is called for a server that is not configured.
func (c *checker) limits(path string, l auth.Limits, unknown func(item string)) {
	c.patterns(path+".tools.allow", l.Tools.Allow)
	c.patterns(path+".tools.deny", l.Tools.Deny)
	c.patterns(path+".resources.allow", l.Resources.Allow)
	c.patterns(path+".prompts.allow", l.Prompts.Allow)
	for i, name := range l.Servers {
		if c.names[name] == "" && !slices.Contains(c.others, name) {
			unknown(at(path+".servers", i))
		}
	}
}

// noServer warns about the name of a server at a path.
func (c *checker) noServer(path string) { c.warn(path, "%s names no server", path) }

// settingsCheck checks and completes the settings.
type settingsCheck struct{ *checker }

// settings checks the settings as a whole after all files are read.
func (c settingsCheck) settings(s *Settings) {
	c.listen(s.Listen)
	for i, origin := range s.AllowedOrigins {
		s.AllowedOrigins[i] = strings.ToLower(origin)
		if !validOrigin(origin) {
			c.fail(at("allowed_origins", i), "want an origin as browsers send it, such as https://app.example.com")
		}
	}
	for i, address := range s.TrustedProxies {
		if _, err := auth.ParseProxies([]string{address}); err != nil {
			c.fail(at("trusted_proxies", i), "want an IP address or a CIDR prefix, such as 10.0.0.0/8")
		}
	}
	c.oneOf("discovery", s.Discovery, downstream.DiscoveryLazy, downstream.DiscoveryEager)
	c.oneOf("name_conflicts", s.NameConflicts, catalog.ConflictNamespace, catalog.ConflictLastWins, catalog.ConflictError)
	for i, tool := range s.Router.Tools {
		if known := router.DefaultTools().Tools; !slices.Contains(known, tool) {
			item := at("router.tools", i)
			c.fail(item, "unknown tool %s; %s", c.got(item), suggestTool(tool, known))
		}
	}
	c.oneOf("proxy.resource_names", s.Proxy.ResourceNames, proxy.ResourcePrefix, proxy.ResourceScheme)
	if s.Proxy.NameLimit != 0 {
		c.atLeast("proxy.name_limit", s.Proxy.NameLimit, 8)
	}
	c.oneOf("tools.pin", s.Tools.Pin, pins.Off, pins.Warn, pins.Enforce)
	c.oneOf("planner.mode", s.Planner.Mode, planner.ModePlan, planner.ModeTools, planner.ModeAuto)
	c.oneOf("execution.confirm_writes", s.Execution.ConfirmWrites,
		downstream.ConfirmAuto, downstream.ConfirmAlways, downstream.ConfirmNever)
	c.numbers(s)
	c.durations(s)
	c.models(s)
	c.keys(&s.Auth)
	c.oauth(&s.Auth)
	c.limited(s.RateLimit.Tools)
	for i, pattern := range s.Validation.DenyPatterns {
		_, err := regexp.Compile("(?i)" + pattern)
		if wrong := (*syntax.Error)(nil); errors.As(err, &wrong) {
			c.fail(at("validation.deny_patterns", i), "is not a valid RE2 expression: %s", wrong.Code)
		} else if pattern == "" {
			c.fail(at("validation.deny_patterns", i), "is empty and would deny every query")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Profiles)) {
		path, p := "profiles."+name, s.Profiles[name]
		if !serverName().MatchString(name) {
			c.fail(path, "%q is not a valid profile name: want %s", name, serverNameRule)
		}
		if p.Surface != "" {
			c.oneOf(path+".surface", p.Surface, SurfaceRouter, SurfaceProxy)
		}
		c.limits(path, p.Limits(), func(item string) { c.fail(item, "names no server: %s", c.got(item)) })
	}
	c.policy(s)
	clusterCheck(c).cluster(s)
	c.oneOf("audit.arguments", s.Audit.Arguments, audit.ArgumentsNone, audit.ArgumentsHash, audit.ArgumentsRedacted)
	c.oneOf("audit.on_failure", s.Audit.OnFailure, audit.FailureContinue, audit.FailureRefuse)
	if s.Audit.Path == "" && (c.given("audit.path") || c.given("audit.arguments") || c.given("audit.on_failure")) {
		c.fail("audit.path", "is missing; want a file or stdout")
	}
	if c.programs && s.Audit.Path != "" {
		if err := audit.Check(s.Audit.Path); err != nil {
			c.fail("audit.path", "%v", err)
		}
	}
	c.oneOf("log.level", s.Log.Level, "trace", "debug", "info", "warn", "error")
	c.oneOf("log.format", s.Log.Format, "text", "json")
}

func (c settingsCheck) numbers(s *Settings) {
	for _, n := range []struct {
		path         string
		value, least int
	}{
		{"proxy.search_above", s.Proxy.SearchAbove, 0},
		{"planner.tool_tokens", s.Planner.ToolTokens, 500},
		{"planner.max_rounds", s.Planner.MaxRounds, 1},
		{"execution.max_parallel", s.Execution.MaxParallel, 1},
		{"execution.attempts", s.Execution.Attempts, 1},
		{"limits.query_chars", s.Limits.QueryChars, 1},
		{"limits.sessions", s.Limits.Sessions, 1},
		{"limits.tracked_requests", s.Limits.TrackedRequests, 1},
		{"rate_limit.requests", s.RateLimit.Requests, 1},
		{"history.entries", s.History.Entries, 0},
	} {
		c.atLeast(n.path, n.value, n.least)
	}
	for _, n := range []struct {
		path  string
		value limit.Bytes
	}{
		{"limits.query_bytes", s.Limits.QueryBytes}, {"limits.body_bytes", s.Limits.BodyBytes},
		{"limits.result_bytes", s.Limits.ResultBytes}, {"history.bytes", s.History.Bytes},
	} {
		if n.value < 1<<10 || n.value > 1<<40 {
			c.fail(n.path, "want 1KiB to 1024GiB, got %s", c.got(n.path))
		}
	}
}

func (c settingsCheck) durations(s *Settings) {
	for _, t := range []struct {
		path  string
		value time.Duration
		zero  bool // is allowed
	}{
		{"proxy.timeout", s.Proxy.Timeout, false}, {"proxy.list_deadline", s.Proxy.ListDeadline, false},
		{"query.timeout", s.Query.Timeout, false}, {"query.timeout_max", s.Query.TimeoutMax, false},
		{"execution.tool_timeout", s.Execution.ToolTimeout, false},
		{"execution.tool_timeout_max", s.Execution.ToolTimeoutMax, false},
		{"execution.retry_delay", s.Execution.RetryDelay, true},
		{"health.interval", s.Health.Interval, false}, {"health.timeout", s.Health.Timeout, false},
		{"limits.session_idle", s.Limits.SessionIdle, false}, {"rate_limit.per", s.RateLimit.Per, false},
		{"history.age", s.History.Age, false}, {"shutdown.grace", s.Shutdown.Grace, true},
	} {
		switch {
		case t.value < 0 && t.zero:
			c.fail(t.path, "must not be negative, got %s", c.got(t.path))
		case t.value <= 0 && !t.zero:
			c.fail(t.path, "must be above zero, got %s", c.got(t.path))
		}
	}
	c.notAbove("query.timeout", s.Query.Timeout, s.Query.TimeoutMax)
	c.notAbove("execution.tool_timeout", s.Execution.ToolTimeout, s.Execution.ToolTimeoutMax)
}

// notAbove compares a default limit with its maximum, at path+"_max". The mistake is at the one that a file sets.
func (c settingsCheck) notAbove(path string, value, most time.Duration) {
	switch {
	case value <= most:
	case c.given(path):
		c.fail(path, "%s is more than %s_max, %s", duration(value), path, duration(most))
	default:
		c.fail(path+"_max", "%s is less than %s, %s", duration(most), path, duration(value))
	}
}

// duration formats t as in a configuration file, such as 10m.
func duration(t time.Duration) string {
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// limited checks the names in rate_limit.tools. One that no tool can have limits nothing.
func (c settingsCheck) limited(tools []string) {
	for i, tool := range tools {
		known := router.DefaultTools().Tools
		server, _, qualified := strings.Cut(tool, "__")
		item := at("rate_limit.tools", i)
		switch {
		case tool == "":
			c.fail(item, "is empty")
		case qualified && c.names[server] == "":
			c.warn(item, "%s names no server and limits nothing", item)
		case !qualified && !slices.Contains(known, tool):
			c.warn(item, "%s names no tool and limits nothing; %s", item, suggestTool(tool, append(known, "server__tool")))
		}
	}
}

func suggestTool(tool string, known []string) string {
	if s := didYouMean(tool, known); strings.HasPrefix(s, "did you mean") {
		return s
	}
	return "want " + orList(known, "or")
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme != "" && u.Hostname() != "" && strings.EqualFold(origin, u.Scheme+"://"+u.Host) &&
		!strings.Contains(origin, "*")
}
