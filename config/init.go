package config

import (
	_ "embed" // for the examples
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed examples/servers.yaml
var exampleServers string

//go:embed examples/settings.yaml
var exampleSettings string

// Init writes commented examples of servers.yaml and settings.yaml into dir, creates dir if needed, and returns the
// paths. The settings write resource names as URI schemes, which more clients accept than the default. Init
// overwrites nothing: if the folder has a configuration of any format, the error names its files.
func Init(dir string) ([]string, error) {
	var present []string
	for _, name := range []string{"servers", "settings"} {
		present = append(present, variants(dir, name)...)
	}
	if len(present) > 0 {
		return nil, fmt.Errorf("%s: already present; nothing was overwritten", orList(present, "and"))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	var written []string
	for _, example := range []struct{ name, content string }{
		{"servers.yaml", exampleServers},
		{"settings.yaml", freshSettings()},
	} {
		file := filepath.Join(dir, example.name)
		if err := create(file, example.content); err != nil {
			return written, err
		}
		written = append(written, file)
	}
	return written, nil
}

// freshSettings returns the example with proxy.resource_names set.
func freshSettings() string {
	return strings.NewReplacer(
		"\n# proxy:\n", "\nproxy:\n",
		"\n#   resource_names: prefix ", "\n  resource_names: scheme   ",
	).Replace(exampleSettings)
}

// create writes a new file.
func create(file, content string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: already present; nothing was overwritten", file)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}
