package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

type clientListCmd struct {
	Name string `help:"Name of the router in the clients." default:"nexus"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// clientState is what nexus client list tells about a client.
type clientState struct {
	Client     string `json:"client"`
	File       string `json:"file"`
	Found      bool   `json:"found"`
	Configured bool   `json:"configured"`
	Reachable  bool   `json:"reachable"`
	Problem    string `json:"problem,omitempty"`
}

func (c *clientListCmd) Run(w *world) error {
	system, err := thisSystem()
	if err != nil {
		return err
	}
	var all []clientState
	for _, client := range clients.All() {
		all = append(all, c.state(w.ctx, client, system))
	}
	if c.JSON {
		return printJSON(w, all)
	}
	for _, s := range all {
		what := "not installed"
		switch {
		case s.Problem != "":
			what = s.Problem
		case s.Configured:
			what = "uses the router"
		case s.Found:
			what = "does not use the router"
		}
		line := fmt.Sprintf("%-12s %s", s.Client, what)
		if s.Found {
			line += ": " + s.File
		}
		fmt.Fprintln(w.stdout, line)
	}
	return nil
}

func (c *clientListCmd) state(ctx context.Context, client *clients.Client, system clients.System) clientState {
	s := clientState{Client: client.Name}
	var err error
	if s.File, err = client.File(system); err != nil {
		return s
	}
	s.Found = true
	ch, err := change.Read(s.File)
	var servers clients.Servers
	if err == nil {
		servers, err = client.Servers(ch.Before)
		err = jsonc.At(s.File, err)
	}
	if err != nil {
		s.Problem = strings.TrimSpace(strings.TrimPrefix(err.Error(), s.File+":"))
		return s
	}
	entry := servers.Get(c.Name)
	if s.Configured = entry != nil; !s.Configured {
		return s
	}
	s.Problem = reach(ctx, client.Read(entry))
	s.Reachable = s.Problem == ""
	return s
}

// surface matches what the paths of a router end in, see profilePath.
var surface = pattern.New(`(/proxy|/servers/[^/]+|/profiles/[^/]+)?/mcp/?$|/$`)

// reachTime bounds how long an address may take to answer.
const reachTime = 2 * time.Second

// reach tells why a client cannot use an entry, "" if it can.
func reach(ctx context.Context, e clients.Entry) string {
	if e.URL == "" {
		if _, err := exec.LookPath(e.Command); err != nil {
			return fmt.Sprintf("there is no program %q", e.Command)
		}
		for i, arg := range e.Args {
			if i > 0 && e.Args[i-1] == "--config" {
				if _, err := os.Stat(arg); err != nil {
					return "there is no " + arg
				}
			}
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	u, err := url.Parse(e.URL)
	if err != nil {
		return "the address is not a URL"
	}
	u.Path, u.RawQuery = surface().ReplaceAllString(u.Path, "")+"/healthz", ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return "the address is not a URL"
	}
	if e.Key != "" {
		request.Header.Set("Authorization", "Bearer "+e.Key)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Sprintf("%s does not answer (%v); start it with nexus serve", u.Host, err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized && e.Key == "":
		return u.Host + " needs a key: set NEXUS_API_KEY and add the client again"
	case answer.StatusCode == http.StatusUnauthorized:
		return u.Host + " refuses the key"
	case answer.StatusCode >= http.StatusBadRequest:
		return fmt.Sprintf("%s answers %s; is it a router?", u.Host, answer.Status)
	}
	return ""
}
