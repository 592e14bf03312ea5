package registry

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Command is how to add a server.
type Command struct {
	Line  string   // for a shell; empty = none can be written
	Needs []string // what the user has to fill in or is asked for, one line each; or why there is no Line
}

// Add returns the command line that adds the server: that of its first package which can be started by npx, uvx or
// docker, else that of its first address. Values that the user has to know are asked for by the command if they are
// variables or headers, else they stand in it in capital letters.
func (e Entry) Add() Command {
	name := serverName(e.Name)
	if name == "" {
		return Command{Needs: []string{"its name has no letters"}}
	}
	var ways []func(name string) (Command, error)
	for _, p := range e.detail.Packages {
		ways = append(ways, p.add)
	}
	for _, t := range e.detail.Remotes {
		ways = append(ways, t.add)
	}
	why := errNone
	for _, add := range ways {
		c, err := add(name)
		switch {
		case err == nil:
			return c
		case errors.Is(why, errNone):
			why = err
		}
	}
	return Command{Needs: []string{why.Error() + "; see its own description"}}
}

var errNone = errors.New("this program has no command for it")

// Bounds of a command.
const (
	maxNeeds = 20
	maxLine  = 2 << 10 // bytes
)

var (
	notInNames = pattern.New(`[^A-Za-z0-9]+`)
	// Forms of the registries for packages. None begins with what a program takes for an option.
	npmName    = pattern.New(`^(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)
	pypiName   = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	imageName  = pattern.New(`^[a-z0-9][a-zA-Z0-9._:/@-]*$`)
	version    = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	variable   = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

	// plain words mean themselves in all shells. Others stand in double quotes, with characters that mean themselves
	// there in sh, bash, zsh, fish, cmd and PowerShell.
	plain  = pattern.New(`^[A-Za-z0-9./:_-][A-Za-z0-9./:_=+-]*$`)
	quoted = pattern.New(`^[A-Za-z0-9 ./:_=+@?&,;()<>{}|*#~-]*$`)

	// steering matches variables that change which program runs, what it loads, or where it comes from: those of the
	// system, of npx, uvx and docker, and of what they run.
	steering = pattern.New(`(?i)^(?:(?:ld|dyld|docker|npm|uv|pip|xdg)_.*|python.*|bash_env|` +
		`node_(?:options|path|extra_ca_certs|tls_.*)|.*java_(?:tool_)?options|ssl_cert_.*|` +
		`path|pathext|comspec|home|userprofile|(?:local)?appdata|.*_proxy)$`)
)

// serverName returns a name for the server in servers.yaml.
func serverName(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.Trim(notInNames().ReplaceAllString(name, "-"), "-")
}

// line returns a command line, or why there is none.
func (c Command) line(words ...string) (Command, error) {
	for i, word := range words {
		switch {
		case plain().MatchString(word):
		case quoted().MatchString(word):
			words[i] = `"` + word + `"`
		default:
			return c, errNone
		}
	}
	if c.Line = strings.Join(words, " "); len(c.Line) > maxLine {
		return c, fmt.Errorf("its command would have more than %d bytes", maxLine)
	}
	if len(c.Needs) > maxNeeds {
		return c, fmt.Errorf("it needs more than %d values", maxNeeds)
	}
	return c, nil
}

// add returns the command line for a package, or why there is none.
func (p packaged) add(name string) (c Command, err error) {
	if p.Transport.Type != "" && p.Transport.Type != "stdio" || p.Version != "" && !version().MatchString(p.Version) {
		return c, errNone
	}
	words := []string{"nexus", "server", "add", name}
	var variables []string
	for _, v := range p.EnvironmentVariables {
		value := v.Value
		if value == "" && v.IsRequired {
			value = v.Default
		}
		known, steers := variable().MatchString(v.Name), steering().MatchString(v.Name)
		switch {
		case !known && v.IsRequired:
			return c, errNone
		case steers && (v.IsRequired || value != ""):
			return c, fmt.Errorf("it gets no command, because it sets %s, which changes what is run", v.Name)
		case !known || steers:
		case value != "" && !strings.Contains(value, "{"):
			words, variables = append(words, "--env", v.Name+"="+value), append(variables, v.Name)
		case v.IsRequired:
			words, variables = append(words, "--env", v.Name), append(variables, v.Name)
			c.Needs = append(c.Needs, v.need("asks for "+v.Name))
		case v.IsSecret:
			c.Needs = append(c.Needs, v.need("may have --env "+v.Name))
		}
	}
	words = append(words, "--")
	at := func(sign string) string {
		if p.Version == "" || p.Version == "latest" {
			return p.Identifier
		}
		return p.Identifier + sign + p.Version
	}
	base := strings.TrimSuffix(strings.TrimPrefix(p.RegistryBaseURL, "https://"), "/")
	from := func(known string) bool { return base == "" || base == known } // others may have another package of that name
	switch {
	case p.RegistryType == "npm" && from("registry.npmjs.org") && npmName().MatchString(p.Identifier):
		words = append(words, "npx", "-y", at("@"))
	case p.RegistryType == "pypi" && from("pypi.org") && pypiName().MatchString(p.Identifier):
		words = append(words, "uvx", at("@"))
	case p.RegistryType == "oci" && (from("docker.io") || strings.HasPrefix(p.Identifier, base+"/")) &&
		imageName().MatchString(p.Identifier):
		words = append(words, "docker", "run", "-i", "--rm")
		for _, v := range variables {
			words = append(words, "-e", v)
		}
		image := p.Identifier
		if last := image[strings.LastIndexByte(image, '/')+1:]; !strings.ContainsAny(last, ":@") {
			image = at(":")
		}
		words = append(words, image)
	default:
		return c, errNone
	}
	for _, a := range p.PackageArguments {
		more, needs := a.words()
		words, c.Needs = append(words, more...), append(c.Needs, needs...)
	}
	return c.line(words...)
}

// words returns what an argument adds to a command line.
func (a input) words() (words, needs []string) {
	value := a.Value
	if value == "" {
		value = a.Default
	}
	if value == "" || strings.Contains(value, "{") {
		if !a.IsRequired {
			return nil, nil
		}
		hint := strings.ToUpper(strings.Trim(notInNames().ReplaceAllString(a.ValueHint+" "+a.Name, "_"), "_"))
		if hint == "" {
			hint = "VALUE"
		}
		value, needs = hint, []string{a.need("replace " + hint)}
	}
	if a.Type == "named" {
		return []string{a.Name, value}, needs
	}
	return []string{value}, needs
}

// add returns the command line for an address, or why there is none.
func (t transport) add(name string) (c Command, err error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(t.URL, "{}") {
		return c, errNone
	}
	words := []string{"nexus", "server", "add", name, "--url", t.URL}
	if path := strings.TrimSuffix(u.Path, "/"); t.Type == "sse" && !strings.HasSuffix(path, "/sse") {
		words = append(words, "--type", "sse")
	} else if t.Type != "sse" && strings.HasSuffix(path, "/sse") {
		words = append(words, "--type", "http")
	}
	for _, h := range t.Headers {
		known := headerName().MatchString(h.Name)
		switch {
		case !known && h.IsRequired:
			return c, errNone
		case known && (h.IsRequired || h.IsSecret):
			words = append(words, "--header", h.Name)
			c.Needs = append(c.Needs, h.need("asks for "+h.Name))
		}
	}
	return c.line(words...)
}

// need describes what an input needs.
func (a input) need(what string) string {
	for _, more := range slices.Compact([]string{line(a.Description), line(a.Value)}) {
		if more != "" {
			what += ": " + more
		}
	}
	return what
}
