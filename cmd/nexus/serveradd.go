package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

type serverAddCmd struct {
	serverEdit
	URL     string   `name:"url" help:"The address of a server that runs elsewhere." placeholder:"URL"`
	Type    string   `help:"Its transport, http or sse, where the address does not tell." placeholder:"TYPE" enum:",http,sse" default:""`
	Header  []string `help:"An HTTP header; without =VALUE the value is read from the terminal or standard input. May be repeated." placeholder:"NAME[=VALUE]" sep:"none"`
	Env     []string `help:"An environment variable of the command; without =VALUE the value is read, too. May be repeated." placeholder:"NAME[=VALUE]" sep:"none"`
	Command []string `arg:"" optional:"" help:"The command that starts the server, and its arguments, after --."`
}

// here names the command line in mistakes.
const here = "command line"

// Run tries the server, shows its tools and the difference, asks, and adds it.
func (c *serverAddCmd) Run(w *world) error {
	into, err := c.into()
	if err != nil {
		return err
	}
	fields, asked, err := c.fields(w)
	if err != nil {
		return err
	}
	cfg, err := config.Load(nil, config.Options{NoFile: true})
	if config.Has(into) {
		cfg, err = config.Load([]string{into}, config.Options{})
	}
	if err != nil {
		return err
	}
	a, err := c.plan(fields, asked, into)
	switch {
	case err != nil:
		return err
	case len(a.Files) == 0:
		fmt.Fprintf(w.stdout, "%s is already there: %s\n", c.Name, a.File)
		return nil
	}
	// Before the server is tried, which takes time and runs its program:
	if err := cmp.Or(c.answerable(w), writable(additions(a))); err != nil {
		return err
	}
	logIn, err := c.try(w, cfg, a)
	if err != nil {
		return err
	}
	if logIn {
		fields = withLogin(fields)
	}
	e := edit{editFlags: c.editFlags, plan: func() ([]step, error) {
		if a, err = c.plan(fields, asked, into); err != nil {
			return nil, err
		}
		return additions(a), nil
	}}
	done, err := e.run(w)
	switch {
	case err != nil:
		return err
	case !done: // --dry-run, or another process has just added it
		return nil
	}
	fmt.Fprintf(w.stdout, "%s is added to %s; %s\n", c.Name, a.File, takesOver)
	for _, warning := range a.Warnings {
		fmt.Fprintln(w.stdout, warning)
	}
	if logIn {
		fmt.Fprintf(w.stdout, "it wants you to log in: %s\n", c.loginCommand())
	}
	return nil
}

// loginCommand returns the command that logs in to the server.
func (c *serverAddCmd) loginCommand() string {
	command := "nexus auth login " + c.Name
	if len(c.Config) > 0 {
		command += " --config " + c.Config[0]
	}
	return command
}

// fields returns the entry for the server, and the values that are credentials because of their names or were read.
func (c *serverAddCmd) fields(w *world) (fields jsonc.Object, asked []string, err error) {
	usage := func(format string, args ...any) (jsonc.Object, []string, error) {
		return nil, nil, &exitError{exitUsage, fmt.Sprintf(format, args...)}
	}
	if err := config.CheckServerName(c.Name); err != nil {
		return usage("%v", err)
	}
	switch {
	case c.URL == "" && len(c.Command) == 0:
		return usage("name what the server is: a command after --, as in nexus server add %s -- npx -y PACKAGE, or --url URL", c.Name)
	case c.URL != "" && len(c.Command) > 0:
		return usage("give a command or --url, not both")
	case c.URL != "" && len(c.Env) > 0:
		return usage("--env is for a command; a server with --url gets --header")
	case c.URL == "" && len(c.Header) > 0:
		return usage("--header is for --url; a command gets --env")
	case c.URL == "" && c.Type != "":
		return usage("--type is for --url")
	case len(c.Command) > 0 && isRouter(clients.Entry{Command: c.Command[0], Args: c.Command[1:]}, clients.Entry{}):
		return usage("this is a router, which does not become a server of its own")
	}
	add := func(name string, value any) { fields = append(fields, jsonc.Member{Name: name, Value: value}) }
	given, name := c.Header, "headers"
	if c.URL == "" {
		add("command", c.Command[0])
		if len(c.Command) > 1 {
			add("args", c.Command[1:])
		}
		asked = config.CredentialArgs(c.Command)
		if namesFile(c.Command) {
			folder, err := os.Getwd()
			if err != nil {
				return nil, nil, err
			}
			add("cwd", folder)
		}
		given, name = c.Env, "env"
	} else {
		add("url", c.URL)
		if c.Type != "" {
			add("type", c.Type)
		}
	}
	values := jsonc.Object{}
	ask := hiddenInput{w: w}
	for _, text := range given {
		key, value, found := cutValue(text, name == "headers")
		if key == "" {
			return usage("--env and --header want a name, as in NAME=VALUE")
		}
		if !found {
			if value, err = ask.line(w.ctx, key); err != nil {
				return nil, nil, err
			}
			if !utf8.ValidString(value) {
				return usage("%s: the value is not UTF-8 text", key)
			}
		}
		if !found || redact.Name(key) {
			asked = append(asked, value)
		}
		values = append(values, jsonc.Member{Name: key, Value: value})
	}
	if len(values) > 0 {
		add(name, values)
	}
	return fields, asked, nil
}

// cutValue cuts NAME=VALUE, of a header also NAME: VALUE.
func cutValue(text string, header bool) (name, value string, found bool) {
	at := strings.IndexByte(text, '=')
	if colon := strings.IndexByte(text, ':'); header && colon >= 0 && (at < 0 || colon < at) {
		return strings.TrimSpace(text[:colon]), strings.TrimSpace(text[colon+1:]), true
	}
	return strings.Cut(text, "=")
}

// namesFile reports whether a command or an argument is a relative path of something in this folder: then the command
// works here only.
func namesFile(command []string) bool {
	for i, word := range command {
		if i == 0 && filepath.Base(word) == word || strings.HasPrefix(word, "-") || filepath.IsAbs(word) {
			continue
		}
		if _, err := os.Stat(word); err == nil {
			return true
		}
	}
	return false
}

// tokenAuth is the member of a server that wants OAuth tokens.
var tokenAuth = jsonc.Member{Name: "auth", Value: jsonc.Object{}}

func withLogin(fields jsonc.Object) jsonc.Object { return append(slices.Clip(fields), tokenAuth) }

// plan plans to add the server. If the file has another one of that name, it is an error.
func (c *serverAddCmd) plan(fields jsonc.Object, asked []string, into string) (*config.Addition, error) {
	text, err := json.Marshal(jsonc.Object{{Name: "mcpServers", Value: jsonc.Object{{Name: c.Name, Value: fields}}}})
	if err != nil {
		return nil, err
	}
	a, err := config.Add(here, text, into, asked...)
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) && wrong.File == here {
		return nil, &exitError{exitUsage, strings.TrimPrefix(wrong.Message, "mcpServers."+c.Name+".")}
	}
	switch {
	case err != nil || len(a.Others) == 0:
		return a, err
	case c.URL != "" && fields[len(fields)-1].Name != tokenAuth.Name: // it may have been added with that
		return c.plan(withLogin(fields), asked, into)
	}
	return nil, &exitError{exitUsage, fmt.Sprintf("%s has another server %s; choose another name, or run nexus server remove %[2]s first",
		a.File, c.Name)}
}

// try connects to the server and prints its tools. It reports whether the server wants a login first.
func (c *serverAddCmd) try(w *world, cfg config.Config, a *config.Addition) (logIn bool, err error) {
	servers, err := a.Servers()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(servers, func(s downstream.ServerConfig) bool { return s.Name == c.Name })
	if i < 0 {
		return false, fmt.Errorf("%s: has no server %s after this change", a.File, c.Name)
	}
	server := servers[i]
	if server.Unusable != "" {
		return false, &exitError{exitUsage, server.Unusable}
	}
	fmt.Fprintf(w.stderr, "nexus: trying %s\n", c.Name)
	cfg.Servers = servers
	v := newVisit(w, &cfg, server)
	v.silent = true
	defer v.servers.Stop()
	err = v.examine(w.ctx)
	var f *link.Failure
	switch {
	case err == nil:
		v.works()
		c.show(w, v)
		return false, nil
	case w.ctx.Err() != nil:
		return false, context.Cause(w.ctx)
	case !errors.As(err, &f):
	case f.Reason == reason.Unauthorized && f.OAuth() && len(server.Headers) == 0:
		return true, nil
	case f.Reason == reason.Unauthorized && c.URL != "":
		err = fmt.Errorf("%w; give the key that it wants, as in --header Authorization", err)
	default:
		err = fmt.Errorf("%w; %s", err, v.remedy(err))
	}
	return false, errors.New(firstLine(v.mask.Text(err.Error()), 1000))
}

// most tools that are shown.
const maxTools = 30

// show prints the tools of a server, cleaned and bounded.
func (c *serverAddCmd) show(w *world, v *visit) {
	for i, tool := range v.tools {
		if i == maxTools {
			fmt.Fprintf(w.stdout, "  … and %d more\n", len(v.tools)-maxTools)
			return
		}
		text := func(member string, most int) string {
			return firstLine(v.mask.Text(texts.Visible(jsonrpc.Text(jsonrpc.Get(tool, member)))), most)
		}
		fmt.Fprintf(w.stdout, "  %-*s %s\n", nameColumns, text("name", maxShown), text("description", maxDescription))
	}
}
