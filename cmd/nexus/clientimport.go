package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// importBackup returns the file with the servers that imports have taken from a client's file.
func (c *clientFlags) importBackup(file string) string { return file + "." + c.Name + "-import-backup" }

type clientImportCmd struct {
	clientAddCmd
}

// Run moves the servers of a client to servers.yaml, and puts the router in their place.
func (c *clientImportCmd) Run(w *world) error {
	client, file, err := c.find()
	if err != nil {
		return err
	}
	into, entry, err := c.target(w)
	if err != nil {
		return err
	}
	var added config.Imported
	e := edit{editFlags: c.editFlags, client: client}
	e.plan = func() (steps []step, err error) {
		steps, added, err = c.take(client, file, into, entry)
		return steps, err
	}
	done, err := e.run(w)
	switch {
	case err != nil:
		return err
	case done:
		fmt.Fprintln(w.stdout, added)
		fmt.Fprintf(w.stdout, "%s uses the router as %q instead. Restart it if it is running; nexus client remove %s undoes this.\n",
			client.Title, c.Name, client.Name)
		return c.warn(w, file, entry)
	case !c.DryRun:
		fmt.Fprintf(w.stdout, "%s has no servers to take over: %s\n", client.Title, file)
	}
	return nil
}

// target returns the servers file or folder that gets the servers, and the router's entry.
func (c *clientImportCmd) target(w *world) (into string, entry clients.Entry, err error) {
	switch {
	case c.Demo || len(c.Config) > 1:
		return "", entry, &exitError{exitUsage, "the servers go to one configuration; give --config once, and no --demo"}
	case len(c.Config) == 0:
		c.Config = []string{config.DefaultFolder}
	}
	into = c.Config[0]
	if c.URL != "" {
		entry, err = c.remote()
		return into, entry, err
	}
	if config.Has(into) {
		if err := c.check(w); err != nil {
			return "", entry, err
		}
	}
	entry, err = c.local()
	return into, entry, err
}

// take plans an import: the addition to servers.yaml, the backup and the change of the client's file; no steps if there
// are no servers. Servers of which servers.yaml has others with the same names stay in the client, and so do routers.
func (c *clientImportCmd) take(client *clients.Client, file, into string, entry clients.Entry) (
	steps []step, done config.Imported, err error) {
	ch, err := change.Read(file)
	if err != nil {
		return nil, done, err
	}
	servers, err := client.Servers(ch.Before)
	if err != nil {
		return nil, done, jsonc.At(file, err)
	}
	servers = slices.DeleteFunc(servers, func(m jsonc.Member) bool {
		return isRouter(client.Read(m.Value.(json.RawMessage)), entry)
	})
	text, names, err := client.Standard(servers, c.Name)
	if err != nil || len(names) == 0 {
		return nil, done, err
	}
	a, err := config.Add(file, text, into)
	if err != nil {
		return nil, done, err
	}
	backup, err := change.Read(c.importBackup(file))
	if err != nil {
		return nil, done, err
	}
	for _, name := range names {
		if slices.Contains(a.Others, a.Renamed[name]) {
			a.Warnings = append(a.Warnings, fmt.Sprintf("%s has another server %s; that of %s stays there",
				a.File, a.Renamed[name], client.Title))
			continue
		}
		if ch.After, err = client.Remove(ch.After, name); err != nil {
			return nil, done, jsonc.At(file, err)
		}
		if backup.Before != nil { // of an earlier import
			if backup.After, err = client.Move(backup.After, ch.Before, name); err != nil {
				return nil, done, jsonc.At(backup.File, err)
			}
		}
	}
	if ch.After, err = client.Put(ch.After, c.Name, entry); err != nil {
		return nil, done, jsonc.At(file, err)
	}
	if !ch.Changes() && len(a.Files) == 0 {
		return nil, done, nil
	}
	steps = additions(a)
	last := step{Change: ch}
	if backup.Before == nil {
		last.backup = backup.File
	} else if backup.Changes() {
		steps = append(steps, step{Change: backup})
	}
	return append(steps, last), a.Imported, nil
}

// ourselves matches the names of this program in commands.
var ourselves = pattern.New(`(^|[/\\])(nexus(\.exe)?|agenticnexus(@.*)?)$`)

// isRouter reports whether an entry is that of a router, which must not become a server of its own. One with the demo
// servers alone may.
func isRouter(e, router clients.Entry) bool {
	i := slices.Index(e.Args, "stdio")
	if i < 0 {
		return e.URL != "" && e.URL == router.URL
	}
	begin := append([]string{e.Command}, e.Args[:i+1]...)
	own := append([]string{router.Command}, router.Args...)
	same := len(begin) <= len(own) && slices.Equal(begin, own[:len(begin)])
	return (same || slices.ContainsFunc(begin, ourselves().MatchString)) &&
		(!slices.Contains(e.Args, "--demo") || slices.Contains(e.Args, "--config"))
}

// giveBack returns a client's file without the router and with the servers that an import took, from its backup. If
// nothing else has changed since, it is the file as it was.
func giveBack(client *clients.Client, before, text []byte, name string) ([]byte, error) {
	now, err := client.Servers(text)
	if err != nil {
		return nil, err
	}
	had, err := client.Servers(before)
	if err != nil {
		return nil, err
	}
	before, err = client.Remove(before, name)
	if err != nil {
		return nil, err
	}
	after, err := client.Remove(text, name)
	left := before // what the import left of the file
	for _, s := range had {
		if err != nil {
			return nil, err
		}
		if s.Name == name || now.Get(s.Name) != nil {
			continue
		}
		if left, err = client.Remove(left, s.Name); err == nil {
			after, err = client.Move(after, before, s.Name)
		}
	}
	if err == nil && isOrigin(client, left, text, name) {
		return before, nil
	}
	return after, err
}
