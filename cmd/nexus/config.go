package main

import (
	"fmt"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Check the configuration and show its effect."`
	Init   configInitCmd   `cmd:"" help:"Write an example configuration."`
	Import configImportCmd `cmd:"" help:"Import the servers of a desktop client's configuration."`
}

type configCheckCmd struct {
	configFlag
}

func (c *configCheckCmd) Run(w *world) error {
	r, err := config.Check(c.Config, config.Options{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w.stdout, r)
	return err
}

type configInitCmd struct {
	Folder string `arg:"" optional:"" default:"config" help:"The folder to write to."`
}

func (c *configInitCmd) Run(w *world) error {
	files, err := config.Init(c.Folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintln(w.stdout, "wrote "+f)
	}
	return nil
}

type configImportCmd struct {
	File string `arg:"" help:"The client's JSON file."`
	Into string `help:"The servers file to write." default:"config/servers.yaml" placeholder:"FILE"`
}

func (c *configImportCmd) Run(w *world) error {
	done, err := config.Import(w.ctx, c.File, c.Into)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.stdout, done)
	return err
}

type keysCmd struct {
	New keysNewCmd `cmd:"" help:"Make an API key."`
}

type keysNewCmd struct {
	Name string `arg:"" optional:"" default:"client" help:"The name of the caller, for logs and limits."`
}

// plainName matches names that YAML reads as text without quotes.
var plainName = pattern.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

// Run prints a new key and the settings that accept it. The key is not stored.
func (c *keysNewCmd) Run(w *world) error {
	key, hash := auth.NewKey()
	name := c.Name
	if !plainName().MatchString(name) {
		name = string(jsonrpc.StringID(name)) // a JSON string is valid YAML
	}
	_, err := fmt.Fprintf(w.stdout, "key (shown once): %s\n\nfor settings.yaml:\nauth:\n  api_keys:\n    - name: %s\n      sha256: %s\n",
		key, name, hash)
	return err
}
