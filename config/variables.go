package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// SecretsFile names the file with variables for the configuration files in its folder, one NAME=value a line. Lines
// that begin with # are comments; a value in double quotes has the escapes of JSON. The environment takes precedence.
const SecretsFile = "secrets.env"

// variables returns the variables in the text of a SecretsFile.
func variables(name string, text []byte) (map[string]string, error) {
	all := map[string]string{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || !isVariable(key) {
			return nil, &Error{File: name, Line: n, Column: 1, Message: "want NAME=value"}
		}
		if strings.HasPrefix(value, `"`) {
			var plain string
			if json.Unmarshal([]byte(value), &plain) != nil {
				return nil, &Error{File: name, Line: n, Column: 1, Message: key + ": the quotes do not match"}
			}
			value = plain
		}
		all[key] = value
	}
	return all, nil
}

// besideFiles adds the variables beside the configuration files to those of the environment.
func (c loader) besideFiles(files []string) error {
	var folders []string
	for _, file := range files {
		if folder := filepath.Dir(file); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	beside := map[string]string{}
	for _, folder := range folders {
		name := filepath.Join(folder, SecretsFile)
		if _, err := os.Stat(name); err != nil {
			continue
		}
		c.warnOfReaders(name)
		text, err := readFile(name, maxFile)
		if err != nil {
			return mistake(name, nil, "%v", err)
		}
		all, err := variables(name, text)
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if other, known := beside[key]; known && other != all[key] {
				return mistake(name, nil, "%s has another value in the %s of another folder; rename one", key, SecretsFile)
			}
			beside[key] = all[key]
		}
	}
	c.env = orElse(c.env, beside)
	return nil
}

// orElse looks up variables of the environment or, if it does not have them, others.
func orElse(environment func(string) (string, bool), others map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, set := environment(name); set {
			return value, true
		}
		value, set := others[name]
		return value, set
	}
}

// warnOfReaders warns about a file that others can read.
func (c loader) warnOfReaders(name string) {
	if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		c.warnAt(mistake(name, nil, "others on this machine can read it; run: chmod 600 %s", name))
	}
}

// vault moves credentials of new servers into a SecretsFile.
type vault struct {
	file  *change.Change
	known map[string]string
	taken map[string]bool // variables that other entries and files name
	asked []string        // values that are credentials, whatever their names and forms
	moved []string        // values
}

// openVault returns the vault in a folder.
func openVault(folder string) (*vault, error) {
	file, err := change.Read(filepath.Join(folder, SecretsFile))
	if err != nil {
		return nil, err
	}
	known, err := variables(file.File, file.Before)
	return &vault{file: file, known: known}, err
}

var notInVariable = pattern.New(`[^A-Z0-9]+`)

// stem returns a name as the beginning of a variable's.
func stem(name string) string {
	name = strings.Trim(notInVariable().ReplaceAllString(strings.ToUpper(name), "_"), "_")
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// serverStem returns the beginning of the variables of a server. The router takes no setting from one: those begin with
// NEXUS_.
func serverStem(server string) string {
	name := stem(server)
	if strings.HasPrefix(name+"_", "NEXUS_") {
		return "SERVER_" + name
	}
	return name
}

// named matches the variables that a configuration file names.
var named = pattern.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)|\benv["']?[ \t]*:[ \t]*["']?([A-Za-z_][A-Za-z0-9_]*)`)

// variablesNamed returns the variables that the configuration files of a folder name, except those of one file. The
// error is of what cannot be read.
func variablesNamed(folder, except string) (map[string]bool, error) {
	all := map[string]bool{}
	files, err := os.ReadDir(folder)
	for _, f := range files {
		ending := filepath.Ext(f.Name())
		if f.Name() == except || !slices.Contains([]string{".yaml", ".yml", ".json"}, ending) {
			continue
		}
		text, unread := readFile(filepath.Join(folder, f.Name()), maxFile)
		err = errors.Join(err, unread)
		addNamed(all, text)
	}
	return all, err
}

// addNamed adds the variables that a text names.
func addNamed(all map[string]bool, text []byte) {
	for _, m := range named().FindAllSubmatch(text, -1) {
		all[string(m[1])+string(m[2])] = true
	}
}

// free reports whether a variable can be added to the file: nothing else gives it a value or reads it.
func (v *vault) free(name string) bool {
	_, known := v.known[name]
	_, set := os.LookupEnv(name)
	return !known && !set && !v.taken[name] && name != openAIKey && name != anthropicKey
}

// reference returns ${NAME} for a credential of a server, NAME being made of the server's name and the key of the
// value. Unless that is known already, it adds a line to the file.
func (v *vault) reference(server, key, value string) string {
	own := stem(key)
	if prefix := serverStem(server); !strings.HasPrefix(own, prefix+"_") {
		own = prefix + "_" + strings.TrimPrefix(own, "_")
	}
	name := own
	for i := 2; ; i++ {
		old, known := v.known[name]
		outside, set := os.LookupEnv(name)
		if v.free(name) || known && old == value && (!set || outside == value) {
			break
		}
		name = own + "_" + strconv.Itoa(i)
	}
	if _, known := v.known[name]; !known {
		text := value
		if strings.ContainsAny(value, "\n\r\"") || strings.TrimSpace(value) != value {
			raw, _ := json.Marshal(value)
			text = string(raw)
		}
		after := v.file.After
		if len(after) > 0 && after[len(after)-1] != '\n' {
			after = append(slices.Clone(after), '\n')
		}
		v.file.After = fmt.Appendf(slices.Clone(after), "%s=%s\n", name, text)
		v.known[name] = value
	}
	v.moved = append(v.moved, value)
	return "${" + name + "}"
}

// scheme matches a header's value that names its scheme.
var scheme = pattern.New(`^((?i:bearer|basic|token) +)(\S+)$`)

// anyScheme matches what may stand before a reference that is a credential as a whole.
var anyScheme = pattern.New(`^([A-Za-z-]+ +)?$`)

// literal returns a credential as it is written in a file: only one that is a reference as a whole, perhaps after a
// scheme, is a reference.
func literal(value string) string {
	before, rest, _ := strings.Cut(value, "${")
	inside, after, closed := cutVariable(rest)
	if closed && after == "" && anyScheme().MatchString(before) && variable().MatchString(inside) {
		return value
	}
	return strings.ReplaceAll(value, "${", "$${")
}

// Credentials returns the credentials in the servers of a configuration file or of a desktop client's JSON text, none
// if that cannot be read: the texts that Add moves to secrets.env.
func Credentials(name string, text []byte) []string {
	doc, err := parse(name, text, isJSON(name, text))
	if err != nil {
		return nil
	}
	v := vault{file: &change.Change{}, known: map[string]string{}}
	if _, servers := clientServers(doc.root); servers != nil {
		for _, m := range servers.(*ast.MappingNode).Values {
			if entry, ok := m.Value.(*ast.MappingNode); ok {
				v.hide(keyOf(m), entry)
			}
		}
	}
	return v.moved
}

// hide moves the credentials in an entry into the vault.
func (v *vault) hide(server string, entry *ast.MappingNode) {
	for _, m := range entry.Values {
		switch key := keyOf(m); key {
		case "env", "headers", "auth":
			if values, ok := m.Value.(*ast.MappingNode); ok {
				for _, m := range values.Values {
					v.text(server, keyOf(m), m.Value, redact.Name(keyOf(m)) || key == "headers" && !ordinary(written(m.Value)))
				}
			}
		case "url":
			v.text(server, key, m.Value, false)
		case "args":
			args, ok := m.Value.(*ast.SequenceNode)
			if !ok {
				continue
			}
			before := ""
			for i, arg := range args.Values {
				value := written(arg)
				v.text(server, "arg_"+strconv.Itoa(i+1), arg, isCredential(before, value))
				before = value
			}
		}
	}
}

// isCredential reports whether an argument is a credential because of the one before it.
func isCredential(before, arg string) bool {
	flag := strings.TrimLeft(before, "-")
	return flag != before && redact.Name(flag) && !strings.HasPrefix(arg, "-")
}

// CredentialArgs returns the arguments that are credentials because of the ones before them.
func CredentialArgs(args []string) (all []string) {
	for i, arg := range args {
		if i > 0 && isCredential(args[i-1], arg) {
			all = append(all, arg)
		}
	}
	return all
}

// text moves a text into the vault if it is a credential, by its name or by its form, and refers to no variable.
func (v *vault) text(server, key string, n ast.Node, named bool) {
	s, ok := n.(*ast.StringNode)
	if !ok || s.Value == "" {
		return
	}
	refers := false
	value, err := expand(s.Value, func(string) (string, bool) { refers = true; return "", true }, false)
	named = named || slices.Contains(v.asked, value)
	if err != nil || refers || !named && redact.Text(value) == value {
		return
	}
	before := ""
	if m := scheme().FindStringSubmatch(value); m != nil {
		before, value = m[1], m[2]
	}
	*s = *textNode(s.Token, before+v.reference(server, key, value))
}
