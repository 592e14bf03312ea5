package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

type clientCmd struct {
	Add    clientAddCmd    `cmd:"" help:"Make a client use the router."`
	Import clientImportCmd `cmd:"" help:"Move the servers of a client to servers.yaml, and put the router in their place."`
	Remove clientRemoveCmd `cmd:"" help:"Undo add and import."`
	List   clientListCmd   `cmd:"" help:"Show the clients on this machine and whether they use the router."`
}

// clientFlags name a client's file and the entry in it.
type clientFlags struct {
	Client  string `arg:"" help:"The client; nexus client list shows their names." completes:"client"`
	Name    string `help:"Name of the router in the client." default:"nexus"`
	Project bool   `help:"Write the file of the project in this folder, which others may share."`
	editFlags
}

// entryName matches names that all clients accept.
var entryName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// thisSystem returns the machine and account of the user.
func thisSystem() (clients.System, error) {
	home, err := os.UserHomeDir()
	return clients.System{OS: runtime.GOOS, Home: home, Env: os.Getenv}, err
}

// find returns the client and its file.
func (c *clientFlags) find() (*clients.Client, string, error) {
	client := clients.Lookup(c.Client)
	if client == nil {
		var names []string
		for _, k := range clients.All() {
			names = append(names, k.Name)
		}
		return nil, "", &exitError{exitUsage,
			fmt.Sprintf("unknown client %q; known are %s", c.Client, strings.Join(names, ", "))}
	}
	if !entryName().MatchString(c.Name) {
		return nil, "", &exitError{exitUsage, fmt.Sprintf("--name %q: use letters, digits, - and _, at most 40", c.Name)}
	}
	if c.Project {
		folder, err := os.Getwd()
		if err != nil {
			return nil, "", err
		}
		file, err := client.ProjectFile(folder)
		if err != nil {
			return nil, "", &exitError{exitUsage, err.Error()}
		}
		return client, file, nil
	}
	system, err := thisSystem()
	if err != nil {
		return nil, "", err
	}
	file, err := client.File(system)
	return client, file, err
}

// ending is what the name of a backup adds to that of the client's file.
const ending = ".nexus-backup"

type clientAddCmd struct {
	clientFlags
	source
	URL      string `name:"url" help:"Connect to the router at this address, with the key in NEXUS_API_KEY if that is set, instead of starting one." placeholder:"URL"`
	Profile  string `help:"What the client sees: router, proxy, server:NAME or the name of a profile." placeholder:"PROFILE"`
	Insecure bool   `help:"Write the key for an address with plain HTTP beyond this machine, too."`
}

func (c *clientAddCmd) Run(w *world) error {
	client, file, err := c.find()
	if err != nil {
		return err
	}
	entry, err := c.entry(w)
	if err != nil {
		return err
	}
	e := edit{editFlags: c.editFlags, client: client}
	e.plan = func() ([]step, error) {
		ch, err := change.Read(file)
		if err != nil {
			return nil, err
		}
		if ch.After, err = client.Put(ch.Before, c.Name, entry); err != nil {
			return nil, jsonc.At(file, err)
		}
		if !ch.Changes() {
			return nil, nil
		}
		s := step{Change: ch, backup: file + ending}
		if before, err := os.ReadFile(s.backup); err == nil && isOrigin(client, before, ch.Before, c.Name) {
			s.backup = "" // it is what remove needs
		}
		return []step{s}, nil
	}
	done, err := e.run(w)
	switch {
	case err != nil:
		return err
	case done:
		fmt.Fprintf(w.stdout, "%s uses the router as %q. Restart it if it is running; nexus client remove %s undoes this.\n",
			client.Title, c.Name, client.Name)
		if _, err := os.Stat(file + ending); err == nil {
			fmt.Fprintf(w.stdout, "The file as it was before: %s\n", file+ending)
		}
	case !c.DryRun:
		fmt.Fprintf(w.stdout, "%s is already configured: %s\n", client.Title, file)
	}
	return c.warn(w, file, entry)
}

// warn tells what keeps the client from using the entry, or what others may see.
func (c *clientAddCmd) warn(w *world, file string, entry clients.Entry) error {
	if problem := reach(w.ctx, entry); problem != "" {
		fmt.Fprintln(w.stderr, "nexus: "+problem)
	}
	info, err := os.Stat(file)
	if err == nil && entry.Key != "" && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		fmt.Fprintf(w.stderr, "nexus: %s holds the key and others on this machine can read it; run: chmod 600 %[1]s\n", file)
	}
	return nil
}

// isOrigin reports whether text is before with the entry added.
func isOrigin(client *clients.Client, before, text []byte, name string) bool {
	servers, err := client.Servers(before)
	if err != nil || servers.Get(name) != nil {
		return false
	}
	added, err := client.Move(before, text, name)
	return err == nil && string(added) == string(text)
}

// entry returns what to write for the router.
func (c *clientAddCmd) entry(w *world) (clients.Entry, error) {
	if c.URL != "" {
		if c.Demo || len(c.Config) > 0 {
			return clients.Entry{}, &exitError{exitUsage, "--url connects to a router that has its own configuration; leave --config and --demo out"}
		}
		return c.remote()
	}
	if len(c.Config) == 0 && !c.Demo {
		c.Config = []string{config.DefaultFolder}
	}
	if err := c.check(w); err != nil {
		return clients.Entry{}, fmt.Errorf("%w; the client would start the router with --config %s",
			err, strings.Join(c.Config, " --config "))
	}
	return c.local()
}

// local returns the entry that starts the router with the configuration.
func (c *clientAddCmd) local() (clients.Entry, error) {
	var args []string
	if c.Demo {
		args = append(args, "--demo")
	}
	for _, path := range c.Config {
		path, err := filepath.Abs(path)
		if err != nil {
			return clients.Entry{}, err
		}
		args = append(args, "--config", path)
	}
	if c.Profile != "" {
		args = append(args, "--profile", c.Profile)
	}
	command, before, err := thisProgram()
	return clients.Entry{Command: command, Args: slices.Concat(before, []string{"stdio"}, args)}, err
}

// check returns an error if the client could not start the router.
func (c *clientAddCmd) check(w *world) error {
	cfg, err := c.load()
	if err != nil || c.Profile == "" {
		return err
	}
	a, err := c.app(w.ctx, cfg, nil, io.Discard)
	if err != nil {
		return err
	}
	defer func() { _ = stop(a, cfg.Shutdown.Grace) }()
	if err := a.CheckProfile(c.Profile); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	return nil
}

// remote returns the entry for --url.
func (c *clientAddCmd) remote() (e clients.Entry, err error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return e, &exitError{exitUsage, "--url: want an address like http://127.0.0.1:8002, without user name and password"}
	}
	if path := strings.TrimSuffix(u.Path, "/"); path == "" || path == "/mcp" {
		u.Path = profilePath(c.Profile)
	} else if c.Profile != "" {
		return e, &exitError{exitUsage, "--profile needs the address of the router without a path"}
	}
	e = clients.Entry{URL: u.String(), Key: os.Getenv("NEXUS_API_KEY")}
	if _, err := clients.Lookup(c.Client).Put(nil, c.Name, e); err != nil {
		return e, &exitError{exitUsage, err.Error()}
	}
	switch {
	case e.Key == "":
	case c.Project:
		return e, &exitError{exitUsage, "the file of a project is shared, so no key is written into it; unset NEXUS_API_KEY, or leave --project out"}
	case u.Scheme == "http" && !oauth.OnLoopback(u) && !c.Insecure:
		return e, &exitError{exitUsage, "the client would send the key over plain HTTP; use https, or give --insecure"}
	}
	return e, nil
}

// profilePath returns the path of a profile.
func profilePath(profile string) string {
	server, isServer := strings.CutPrefix(profile, "server:")
	switch {
	case profile == "" || profile == "router":
		return "/mcp"
	case profile == "proxy":
		return "/proxy/mcp"
	case isServer:
		return "/servers/" + server + "/mcp"
	}
	return "/profiles/" + profile + "/mcp"
}

// thisProgram returns the command that starts this program again, also after an update.
func thisProgram() (command string, args []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	parts := strings.Split(filepath.ToSlash(self), "/")
	switch {
	case slices.Contains(parts, "node_modules"): // npm moves it with each update
		if runtime.GOOS == "windows" { // where npx is a script
			return "cmd", []string{"/c", "npx", "-y", "agenticnexus"}, nil
		}
		return "npx", []string{"-y", "agenticnexus"}, nil
	case slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, "go-build") }):
		return "", nil, errors.New("go run deletes this program when it ends; build it (go build -o bin/nexus ./cmd/nexus) and use that")
	}
	if found, err := exec.LookPath("nexus"); err == nil { // a link that outlives updates
		a, errA := os.Stat(found)
		b, errB := os.Stat(self)
		if errA == nil && errB == nil && os.SameFile(a, b) && filepath.IsAbs(found) {
			return found, nil, nil
		}
	}
	return self, nil, nil
}

type clientRemoveCmd struct {
	clientFlags
}

// Run takes the router out of a client. A file that add has made, or that has not been changed since, becomes what it
// was.
func (c *clientRemoveCmd) Run(w *world) error {
	client, file, err := c.find()
	if err != nil {
		return err
	}
	restored, gaveBack := false, false
	e := edit{editFlags: c.editFlags, client: client}
	e.plan = func() ([]step, error) {
		ch, err := change.Read(file)
		if err != nil {
			return nil, err
		}
		before, readErr := os.ReadFile(file + ending)
		taken, takenErr := os.ReadFile(c.importBackup(file))
		restored = readErr == nil && isOrigin(client, before, ch.Before, c.Name)
		gaveBack = takenErr == nil
		switch {
		case gaveBack:
			ch.After, err = giveBack(client, taken, ch.Before, c.Name)
		case restored:
			ch.After = before
		case ch.Before != nil && isOrigin(client, nil, ch.Before, c.Name): // add has made the file
			ch.After = nil
		default:
			ch.After, err = client.Remove(ch.Before, c.Name)
		}
		if err != nil {
			return nil, jsonc.At(file, err)
		}
		if !ch.Changes() {
			return nil, nil
		}
		return []step{{Change: ch}}, nil
	}
	done, err := e.run(w)
	switch {
	case err != nil:
		return err
	case !done && !c.DryRun:
		fmt.Fprintf(w.stdout, "%s has no %q: %s\n", client.Title, c.Name, file)
	case done && gaveBack:
		fmt.Fprintf(w.stdout, "%s has its own servers again and no longer uses the router; servers.yaml keeps them, too.\n",
			client.Title)
		return os.Remove(c.importBackup(file))
	case done:
		fmt.Fprintf(w.stdout, "%s no longer uses the router.\n", client.Title)
		if restored {
			return os.Remove(file + ending)
		}
	}
	return nil
}
