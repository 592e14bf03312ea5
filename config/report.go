package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// Report is a configuration for printing, without secrets and without values that may contain one.
type Report struct {
	Config Config
}

// Check loads the configuration as Load does, and also fails if `nexus serve` would, for example because the audit log
// cannot be opened, or would do without a server, because a variable is not set. It warns about commands that do not
// exist on this machine.
func Check(paths []string, opts Options) (Report, error) {
	opts.programs, opts.strict = true, true
	cfg, err := Load(paths, opts)
	if err != nil {
		return Report{}, err
	}
	if err := CheckBind(cfg.Listen, cfg.Auth); err != nil {
		return Report{}, err
	}
	if cfg.Cluster.Enabled() {
		if _, err := cfg.Cluster.Address(cfg.Listen); err != nil {
			return Report{}, err
		}
	}
	return Report{Config: cfg}, nil
}

// String lists the files, the servers, the settings that differ from the defaults, and the warnings.
func (r Report) String() string {
	var out strings.Builder
	c := r.Config
	if len(c.Files) == 0 {
		out.WriteString("files: none, everything is default\n")
	} else {
		fmt.Fprintf(&out, "files: %s\n", strings.Join(c.Files, ", "))
	}
	section(&out, "servers", len(c.Servers), func(i int) string {
		s := c.Servers[i]
		line := s.Name + "\t" + s.Type + "\t" + reach(s)
		if s.Disabled {
			line += " (disabled)"
		}
		return line
	})
	changed := differences(c.Settings)
	section(&out, "settings that differ from the defaults", len(changed), func(i int) string { return changed[i] })
	section(&out, "warnings", len(c.Warnings), func(i int) string { return c.Warnings[i] })
	return out.String()
}

func section(out *strings.Builder, title string, n int, line func(int) string) {
	if n == 0 {
		fmt.Fprintf(out, "%s: none\n", title)
		return
	}
	fmt.Fprintf(out, "%s:\n", title)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range n {
		fmt.Fprintf(table, "  %s\n", line(i))
	}
	table.Flush() // a strings.Builder does not fail
}

// reach returns the program or the origin of a server. Arguments, paths and queries may contain tokens.
func reach(s downstream.ServerConfig) string {
	if s.Command != "" {
		return filepath.Base(s.Command)
	}
	return origin(s.URL)
}

func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

// differences lists "path: value (default value)" for all settings that were changed.
func differences(s Settings) []string {
	defaults := map[string]string{}
	flatten("", reflect.ValueOf(Default().Settings), func(path, value string) { defaults[path] = value })
	var lines []string
	flatten("", reflect.ValueOf(s), func(path, value string) {
		was, known := defaults[path]
		switch {
		case known && was == value, !known && slices.Contains([]string{"", "0", "[]", "map[]"}, value):
		case was != "":
			lines = append(lines, fmt.Sprintf("%s: %s (default %s)", path, cut(value), cut(was)))
		default:
			lines = append(lines, path+": "+cut(value))
		}
	})
	return lines
}

func byText(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }

// cut shortens a text that is too long for a line.
func cut(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}

// flatten calls each for every setting that is not a mapping, in the order of the structs.
func flatten(path string, v reflect.Value, each func(path, value string)) {
	switch value := v.Interface().(type) {
	case time.Duration:
		each(path, duration(value))
		return
	case []auth.KeyConfig:
		names := make([]string, len(value))
		for i, key := range value {
			names[i] = key.Name
		}
		each(path, "["+strings.Join(names, ", ")+"]")
		return
	case []auth.ClaimConfig:
		claims := make([]string, len(value))
		for i, c := range value {
			claims[i] = c.Claim + "=" + c.Value
		}
		each(path, "["+strings.Join(claims, ", ")+"]")
		return
	case []string:
		each(path, "["+strings.Join(value, ", ")+"]")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(path, v.Elem(), each)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if key := v.Type().Field(i).Tag.Get("yaml"); key != "-" {
				flatten(join(path, key), v.Field(i), each)
			}
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), byText) {
				flatten(join(path, key.String()), v.MapIndex(key), each)
			}
			return
		}
		fallthrough
	default:
		value := fmt.Sprint(v.Interface())
		switch {
		case strings.HasSuffix(path, ".base_url"):
			value = origin(value)
		case path == "cluster.nats.url" && value != "":
			hosts := strings.Split(value, ",")
			for i := range hosts {
				hosts[i] = origin(strings.TrimSpace(hosts[i]))
			}
			value = strings.Join(hosts, ",")
		}
		each(path, value)
	}
}

// Compare returns the paths of the settings that differ, such as "limits.sessions", in the order of the
// documentation. A list is one setting, and so is a group that only one side sets.
func Compare(a, b Settings) []string {
	return compare("", reflect.ValueOf(a), reflect.ValueOf(b))
}

func compare(path string, a, b reflect.Value) (paths []string) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
		return nil
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return compare(path, a.Elem(), b.Elem())
	case a.Kind() != reflect.Struct:
		return []string{path}
	}
	for i := range a.NumField() {
		if key := a.Type().Field(i).Tag.Get("yaml"); key != "-" {
			paths = slices.Concat(paths, compare(join(path, key), a.Field(i), b.Field(i)))
		}
	}
	return paths
}
