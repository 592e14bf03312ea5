package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
)

// importEnding is what the name of the backup of an import adds to that of the client's file.
const importEnding = ".nexus-import-backup"

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
	e := edit{clientFlags: c.clientFlags, secrets: []string{entry.Key}}
	e.plan = func() ([]step, error) {
		ch, a, err := c.take(client, file, into, entry)
		if err != nil || a == nil {
			return nil, err
		}
		added, e.secrets = a.Imported, append(e.secrets, a.Secrets...)
		var steps []step
		for _, f := range a.Files {
			steps = append(steps, step{f, ""})
		}
		backup := file + importEnding
		if _, err := os.Stat(backup); err == nil {
			backup = "" // it has the servers of an earlier import, which remove puts back
		}
		return append(steps, step{ch, backup}), nil
	}
	done, err := e.run(w)
	switch {
	case err != nil:
		return err
	case done:
		fmt.Fprintln(w.stdout, added)
		fmt.Fprintf(w.stdout, "%s uses the router as %q instead. Restart it if it is running; nexus client remove %s undoes this.\n",
			client.Title, c.Name, client.Name)
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
	if _, err := os.Stat(into); err == nil {
		if err := c.check(w); err != nil {
			return "", entry, err
		}
	}
	entry, err = c.local()
	return into, entry, err
}

// take plans an import: the change of the client's file and the addition to servers.yaml, nil if there are no servers.
// Servers of which servers.yaml has others with the same names stay in the client.
func (c *clientImportCmd) take(client *clients.Client, file, into string, entry clients.Entry) (
	*change.Change, *config.Addition, error) {
	ch, err := change.Read(file)
	if err != nil {
		return nil, nil, err
	}
	servers, err := client.Servers(ch.Before)
	if err != nil {
		return nil, nil, jsonc.At(file, err)
	}
	text, names, err := client.Standard(servers, c.Name)
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	a, err := config.Add(file, text, into)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if slices.Contains(a.Others, a.Renamed[name]) {
			a.Warnings = append(a.Warnings, fmt.Sprintf("%s has another server %s; that of %s stays there",
				a.File, a.Renamed[name], client.Title))
			continue
		}
		if ch.After, err = client.Remove(ch.After, name); err != nil {
			return nil, nil, jsonc.At(file, err)
		}
	}
	if ch.After, err = client.Put(ch.After, c.Name, entry); err != nil {
		return nil, nil, jsonc.At(file, err)
	}
	if !ch.Changes() && len(a.Files) == 0 {
		return nil, nil, nil
	}
	return ch, a, nil
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
