package config

import (
	"errors"
	"maps"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/size"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// check checks the settings as a whole after all files are read.
func (d *decoder) check(s *Settings) {
	if why := checkListen(s.Listen); why != "" {
		d.wrong("listen", "%s, got %s", why, d.places["listen"].quoted())
	}
	for i, origin := range s.AllowedOrigins {
		s.AllowedOrigins[i] = strings.ToLower(origin)
		if !validOrigin(origin) {
			d.failItem("allowed_origins", i, "want an origin as browsers send it, such as https://app.example.com")
		}
	}
	for i, address := range s.TrustedProxies {
		if _, err := auth.ParseProxies([]string{address}); err != nil {
			d.failItem("trusted_proxies", i, "want an IP address or a CIDR prefix, such as 10.0.0.0/8")
		}
	}
	d.oneOf("discovery", s.Discovery, downstream.DiscoveryLazy, downstream.DiscoveryEager)
	d.oneOf("name_conflicts", s.NameConflicts,
		catalog.ConflictNamespace, catalog.ConflictLastWins, catalog.ConflictError)
	for i, tool := range s.Router.Tools {
		if known := router.DefaultTools().Tools; !slices.Contains(known, tool) {
			quoted := d.places[item("router.tools", i)].quoted()
			d.failItem("router.tools", i, "unknown tool %s; %s", quoted, suggestTool(tool, known))
		}
	}
	d.oneOf("proxy.resource_names", s.Proxy.ResourceNames, proxy.ResourcePrefix, proxy.ResourceScheme)
	if s.Proxy.NameLimit != 0 {
		d.atLeast("proxy.name_limit", s.Proxy.NameLimit, 8)
	}
	d.numbers(s)
	d.durations(s)
	d.oneOf("planner.mode", s.Planner.Mode, planner.ModePlan, planner.ModeTools, planner.ModeAuto)
	d.oneOf("execution.confirm_writes", s.Execution.ConfirmWrites,
		downstream.ConfirmAuto, downstream.ConfirmAlways, downstream.ConfirmNever)
	d.models(s)
	d.keys(&s.Auth)
	d.oauth(&s.Auth)
	for i, tool := range s.RateLimit.Tools {
		d.limited(i, tool)
	}
	for i, pattern := range s.Validation.DenyPatterns {
		_, err := regexp.Compile("(?i)" + pattern)
		if wrong := (*syntax.Error)(nil); errors.As(err, &wrong) {
			d.failItem("validation.deny_patterns", i, "is not a valid RE2 expression: %s", wrong.Code)
		} else if pattern == "" {
			d.failItem("validation.deny_patterns", i, "is empty and would deny every query")
		}
	}
	d.profiles(s.Profiles)
	d.oneOf("log.level", s.Log.Level, "trace", "debug", "info", "warn", "error")
	d.oneOf("log.format", s.Log.Format, "text", "json")
}

func (d *decoder) profiles(all map[string]Profile) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, p := join("profiles", name), all[name]
		if !serverName.MatchString(name) {
			d.wrong(path, "%q is not a valid profile name: want %s", name, serverNameRule)
		}
		if p.Surface != "" {
			d.oneOf(path+".surface", p.Surface, SurfaceRouter, SurfaceProxy)
		}
		d.patterns(path+".tools.allow", p.Tools.Allow)
		d.patterns(path+".tools.deny", p.Tools.Deny)
		d.namesServers(path+".servers", p.Servers)
	}
}

// limited checks a name in rate_limit.tools. One that no tool can have limits nothing.
func (d *decoder) limited(i int, tool string) {
	known := router.DefaultTools().Tools
	server, _, qualified := strings.Cut(tool, "__")
	at := item("rate_limit.tools", i)
	switch {
	case tool == "":
		d.failItem("rate_limit.tools", i, "is empty")
	case qualified:
		if _, ok := d.servers[server]; !ok {
			d.warn(d.places[at].at, "%s names no server and limits nothing", at)
		}
	case !slices.Contains(known, tool):
		d.warn(d.places[at].at, "%s names no tool and limits nothing; %s", at,
			suggestTool(tool, append(known, "server__tool")))
	}
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func suggestTool(tool string, known []string) string {
	if s := didYouMean(tool, known); strings.HasPrefix(s, "did you mean") {
		return s
	}
	return "want " + orList(known, "or")
}

// wrong records that the value at path is not allowed, unless a problem with it is already known.
func (d *decoder) wrong(path, format string, args ...any) {
	if d.failed[path] {
		return
	}
	d.fail(d.places[path].at, path, format, args...)
}

func (d *decoder) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		d.wrong(path, "want %s, got %s", orList(allowed, "or"), d.places[path].quoted())
	}
}

func (d *decoder) atLeast(path string, value, least int) {
	if value < least {
		d.wrong(path, "must be at least %d, got %s", least, d.places[path].quoted())
	}
}

func (d *decoder) numbers(s *Settings) {
	d.atLeast("proxy.search_above", s.Proxy.SearchAbove, 0)
	d.atLeast("planner.tool_tokens", s.Planner.ToolTokens, 500)
	d.atLeast("planner.max_rounds", s.Planner.MaxRounds, 1)
	d.atLeast("execution.max_parallel", s.Execution.MaxParallel, 1)
	d.atLeast("execution.attempts", s.Execution.Attempts, 1)
	d.atLeast("limits.query_chars", s.Limits.QueryChars, 1)
	d.atLeast("limits.sessions", s.Limits.Sessions, 1)
	d.atLeast("limits.tracked_requests", s.Limits.TrackedRequests, 1)
	d.atLeast("rate_limit.requests", s.RateLimit.Requests, 1)
	d.atLeast("history.entries", s.History.Entries, 0)
	d.inRange("history.bytes", s.History.Bytes)
	d.inRange("limits.query_bytes", s.Limits.QueryBytes)
	d.inRange("limits.body_bytes", s.Limits.BodyBytes)
	d.inRange("limits.result_bytes", s.Limits.ResultBytes)
}

func (d *decoder) inRange(path string, value size.Bytes) {
	if value < 1<<10 || value > 1<<40 {
		d.wrong(path, "want 1KiB to 1024GiB, got %s", d.places[path].quoted())
	}
}

func (d *decoder) durations(s *Settings) {
	d.above("proxy.timeout", s.Proxy.Timeout)
	d.above("proxy.list_deadline", s.Proxy.ListDeadline)
	d.above("query.timeout", s.Query.Timeout)
	d.above("query.timeout_max", s.Query.TimeoutMax)
	d.above("execution.tool_timeout", s.Execution.ToolTimeout)
	d.above("execution.tool_timeout_max", s.Execution.ToolTimeoutMax)
	d.above("health.interval", s.Health.Interval)
	d.above("health.timeout", s.Health.Timeout)
	d.above("limits.session_idle", s.Limits.SessionIdle)
	d.above("rate_limit.per", s.RateLimit.Per)
	d.above("history.age", s.History.Age)
	d.notNegative("execution.retry_delay", s.Execution.RetryDelay)
	d.notNegative("shutdown.grace", s.Shutdown.Grace)
	d.notAbove("query.timeout", s.Query.Timeout, s.Query.TimeoutMax)
	d.notAbove("execution.tool_timeout", s.Execution.ToolTimeout, s.Execution.ToolTimeoutMax)
}

func (d *decoder) above(path string, value time.Duration) {
	if value <= 0 {
		d.wrong(path, "must be above zero, got %s", d.places[path].quoted())
	}
}

func (d *decoder) notNegative(path string, value time.Duration) {
	if value < 0 {
		d.wrong(path, "must not be negative, got %s", d.places[path].quoted())
	}
}

// notAbove compares a default limit with its maximum, at path+"_max". The problem is at the one that a file sets.
func (d *decoder) notAbove(path string, value, most time.Duration) {
	if value <= most || value <= 0 || most <= 0 {
		return
	}
	if _, given := d.places[path]; given {
		d.wrong(path, "%s is more than %s_max, %s", duration(value), path, duration(most))
	} else {
		d.wrong(path+"_max", "%s is less than %s, %s", duration(most), path, duration(value))
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

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme != "" && u.Hostname() != "" && strings.EqualFold(origin, u.Scheme+"://"+u.Host) &&
		!strings.Contains(origin, "*")
}
