package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

type authCmd struct {
	Login  authLoginCmd  `cmd:"" help:"Log in to a server that wants OAuth tokens."`
	Logout authLogoutCmd `cmd:"" help:"Revoke and delete the token of a server."`
	Status authStatusCmd `cmd:"" help:"Show which servers the router is logged in to."`
}

// tokens are the flags of the auth commands.
type tokens struct {
	configFlag
	cfg config.Config // that open has loaded
}

// open returns the servers with auth, or only the named one, and the token store. leave ends what the store needs.
func (c *tokens) open(ctx context.Context, only string) (
	servers []oauth.Server, store oauth.Store, leave func(), err error,
) {
	if c.cfg, err = config.Load(c.Config, config.Options{}); err != nil {
		return nil, oauth.Store{}, nil, err
	}
	if _, err = c.cfg.StateFolder(); err != nil {
		return nil, oauth.Store{}, nil, err
	}
	known := false
	for _, s := range c.cfg.Servers {
		known = known || s.Name == only
		if server, ok := s.OAuth(); ok && (only == "" || s.Name == only) {
			servers = append(servers, server)
		}
	}
	switch {
	case only == "" || len(servers) > 0:
		var joined *app.Cluster
		leave = func() {}
		if c.cfg.Cluster.Enabled() {
			if joined, err = app.Join(ctx, c.cfg.Cluster, slog.New(slog.DiscardHandler)); err != nil {
				return nil, oauth.Store{}, nil, err
			}
			leave = joined.Close
		}
		store, err = app.Tokens(joined, &c.cfg)
		if err != nil && slices.ContainsFunc(servers, func(s oauth.Server) bool { return s.PerCaller() }) {
			leave()
			return nil, oauth.Store{}, nil, err
		}
		return servers, store, leave, nil
	case known:
		return nil, oauth.Store{}, nil, &exitError{exitUsage, fmt.Sprintf("server %s has no auth in its configuration; write auth: {} if it wants OAuth tokens", only)}
	}
	return nil, oauth.Store{}, nil, &exitError{exitUsage, fmt.Sprintf("the configuration has no server %s", only)}
}

type authLoginCmd struct {
	tokens
	Server string   `arg:"" help:"Name of the server." completes:"server"`
	Scopes []string `name:"scope" sep:"none" placeholder:"SCOPE" help:"A scope to request besides auth.scopes and those that the server names; may be repeated."`
}

// loginTime is the time limit of a login.
const loginTime = 5 * time.Minute

func (c *authLoginCmd) Run(w *world) error {
	servers, store, leave, err := c.open(w.ctx, c.Server)
	if err != nil {
		return err
	}
	defer leave()
	late := errors.New("no login within " + loginTime.String())
	ctx, cancel := context.WithTimeoutCause(w.ctx, loginTime, late)
	defer cancel()
	for _, scope := range c.Scopes {
		if !oauth.ValidScope(scope) {
			return &exitError{exitUsage, fmt.Sprintf("--scope %q is no scope", scope)}
		}
	}
	if servers[0].PerCaller() {
		return &exitError{exitUsage, fmt.Sprintf("each caller of server %[1]s logs in itself: at /login/%[1]s of the router", c.Server)}
	}
	servers[0].Scopes = slices.Concat(servers[0].Scopes, c.Scopes)
	stored, _ := store.Load(c.Server) // a login also replaces a token that cannot be read
	token, err := oauth.Login(ctx, servers[0], stored, func(url string) {
		fmt.Fprintf(w.stdout, "Open this page in a browser to log in to %s:\n\n  %s\n\n", c.Server, url)
		if w.terminal {
			browse(url)
		}
	})
	if err == nil {
		err = store.Save(ctx, token)
	}
	if err != nil {
		return fmt.Errorf("cannot log in to server %s: %w", c.Server, err)
	}
	_, err = fmt.Fprintf(w.stdout, "logged in to %s%s; a running router uses this from now on\n", c.Server, lasting(token))
	return err
}

// lasting describes the lifetime of a token.
func lasting(t *oauth.Token) string {
	switch {
	case t.Expires.IsZero():
		return ""
	case t.Renewable():
		return ", renewed when needed"
	}
	return " for " + time.Until(t.Expires).Round(time.Second).String()
}

// browse opens a page in a browser if the machine has one.
func browse(url string) {
	opener := map[string][]string{
		"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
	}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	if _, err := exec.LookPath(opener[0]); err != nil {
		return
	}
	command := exec.Command(opener[0], append(opener[1:], url)...)
	if command.Start() == nil {
		_ = command.Process.Release() // the command may run as long as the browser
	}
}

type authLogoutCmd struct {
	tokens
	Server string `arg:"" help:"Name of the server." completes:"server"`
	Key    string `help:"Name of the API key, or subject of access tokens, whose login this is, at a server where each caller logs in itself." placeholder:"NAME"`
}

func (c *authLogoutCmd) Run(w *world) error {
	servers, store, leave, err := c.open(w.ctx, c.Server)
	if err != nil {
		return err
	}
	defer leave()
	if servers[0].PerCaller() != (c.Key != "") {
		return &exitError{exitUsage, "--key is for a server with auth.scope: per_caller, which needs it"}
	}
	callers := []string{""}
	if c.Key != "" {
		if callers, err = c.callers(store); err != nil {
			return err
		}
	}
	result := "not logged in to"
	var unrevoked error
	for _, caller := range callers {
		known, err := oauth.Logout(w.ctx, servers[0], store.For(caller))
		if !known && err != nil {
			return fmt.Errorf("cannot log out of server %s: %w", c.Server, err)
		}
		if known {
			result = "logged out of"
		}
		unrevoked = errors.Join(unrevoked, err)
	}
	fmt.Fprintf(w.stdout, "%s %s\n", result, c.Server)
	if unrevoked != nil {
		return &exitError{exitPartly,
			fmt.Sprintf("the token of server %s was deleted here but not revoked: %v", c.Server, unrevoked)}
	}
	return nil
}

// callers returns whose login ends: the holder of the key, and who has logged in under that name with a key that is no
// longer configured, or with an access token.
func (c *authLogoutCmd) callers(store oauth.Store) (callers []string, err error) {
	keys, err := auth.New(c.cfg.Auth, auth.Options{})
	if err != nil {
		return nil, err
	}
	holder, known := keys.Named(c.Key)
	for _, caller := range store.Callers(c.Server) {
		t, _ := store.For(caller).Load(c.Server) // one that cannot be read has no name
		if caller == holder.Login || t != nil && t.Caller == c.Key {
			callers = append(callers, caller)
		}
	}
	if !known && len(callers) == 0 {
		return nil, &exitError{exitUsage, fmt.Sprintf("the configuration has no API key %s, and nobody "+
			"of that name has logged in", c.Key)}
	}
	return callers, nil
}

type authStatusCmd struct {
	tokens
	Server string `arg:"" optional:"" help:"Name of the server (default: all)." completes:"server"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// login is one row of auth status.
type login struct {
	Server    string     `json:"server"`
	Caller    string     `json:"caller,omitempty"` // name of its key, or subject of its tokens, with scope per_caller
	URL       string     `json:"url"`
	Flow      string     `json:"flow"`
	LoggedIn  bool       `json:"logged_in"`
	Since     *time.Time `json:"since,omitempty"` // when the person logged in
	Expires   *time.Time `json:"expires,omitempty"`
	ExpiresIn *int       `json:"expires_in,omitempty"` // seconds
	Renewable bool       `json:"renewable"`            // without a new login
	Scopes    []string   `json:"scopes"`
	Issuer    string     `json:"issuer,omitempty"`
	Problem   string     `json:"problem,omitempty"`
}

func (c *authStatusCmd) Run(w *world) error {
	servers, store, leave, err := c.open(w.ctx, c.Server)
	if err != nil {
		return err
	}
	defer leave()
	logins := []login{}
	missing := false
	for _, s := range servers {
		l := loginOf(s, store)
		missing = missing || !l.LoggedIn && !l.Renewable && !s.PerCaller()
		logins = append(logins, l)
		if s.PerCaller() {
			for _, s.Caller = range store.Callers(s.Name) {
				logins = append(logins, loginOf(s, store.For(s.Caller)))
			}
		}
	}
	if c.JSON {
		err = printJSON(w, logins)
	} else {
		err = printLogins(w, logins)
	}
	if err == nil && missing {
		err = &exitError{code: exitPartly}
	}
	return err
}

func loginOf(s oauth.Server, store oauth.Store) login {
	l := login{Server: s.Name, URL: s.URL, Flow: s.Flow, Scopes: []string{}}
	l.Flow = cmp.Or(l.Flow, oauth.FlowCode)
	l.Renewable = l.Flow == oauth.FlowClientCredentials
	again := "run: " + oauth.LoginCommand(s.Name)
	if s.PerCaller() {
		again = "each caller logs in itself, at /login/" + s.Name + " of the router"
		l.Caller = s.Caller[:min(len(s.Caller), 8)] // until its name is known
		if s.Caller == "" {
			l.Problem = again
			return l
		}
	}
	t, err := store.Load(s.Name)
	switch {
	case err != nil:
		l.Problem = err.Error()
	case t == nil && !l.Renewable:
		l.Problem = again
	case t == nil:
		l.Problem = "no token yet; the router gets one when it needs it"
	case !t.Of(s):
		l.Problem = "the configuration has changed since; " + again
	default:
		l.Renewable, l.Issuer = t.Renewable(), t.Issuer
		l.Scopes = append(l.Scopes, t.Scopes...)
		l.LoggedIn = l.Renewable || !t.Expired(time.Now())
		if !t.Expires.IsZero() {
			seconds := int(time.Until(t.Expires).Seconds())
			l.Expires, l.ExpiresIn = &t.Expires, &seconds
		}
		if !l.LoggedIn {
			l.Problem = "the token has ended; " + again
		}
	}
	if t != nil {
		l.Caller = cmp.Or(t.Caller, l.Caller)
		if !t.Since.IsZero() {
			l.Since = &t.Since
		}
	}
	return l
}

func printLogins(w *world, logins []login) error {
	if len(logins) == 0 {
		_, err := fmt.Fprintln(w.stdout, "no server has auth in its configuration")
		return err
	}
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, l := range logins {
		server, state := l.Server, "not logged in"
		if l.Caller != "" {
			server += " of " + l.Caller
		}
		if l.LoggedIn {
			state = "logged in"
			if l.Since != nil {
				state += " since " + l.Since.Local().Format("2006-01-02 15:04")
			}
		}
		expires := "-"
		switch {
		case l.ExpiresIn != nil && *l.ExpiresIn > 0:
			expires = "token ends in " + (time.Duration(*l.ExpiresIn) * time.Second).String()
		case l.ExpiresIn != nil:
			expires = "token has ended"
		}
		if l.LoggedIn && l.Renewable {
			expires += ", renewed when needed"
		}
		rest := l.Problem
		if rest == "" && len(l.Scopes) > 0 {
			rest = "scopes: " + strings.Join(l.Scopes, " ")
		}
		fmt.Fprintln(table, strings.Join([]string{server, l.Flow, state, expires, rest}, "\t"))
	}
	return table.Flush()
}
