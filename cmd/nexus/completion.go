package main

import (
	_ "embed" // for the scripts
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/pins"
)

//go:embed completion.bash
var bashCompletion string

//go:embed completion.zsh
var zshCompletion string

//go:embed completion.fish
var fishCompletion string

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Run prints a script that asks this program for the words that may follow, see completeCmd.
func (c *completionCmd) Run(w *world) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(w.stdout, script)
	return err
}

// completeCmd prints what a word of a command line may be, one a line: the word, a tab, and what it means. Without any
// it is the name of a file. The command is hidden: it is for the scripts.
type completeCmd struct {
	Words []string `arg:"" help:"The words after the name of the program, up to the one that may be unfinished."`
}

// inShells matches words that mean themselves in all shells.
var inShells = pattern.New(`^[A-Za-z0-9_.-]+$`)

func (c *completeCmd) Run(w *world, app *kong.Kong) error {
	last := len(c.Words) - 1
	before, begin, prefix := c.Words[:last], c.Words[last], ""
	p := follow(app.Model.Node, before)
	if flag, value, found := strings.Cut(begin, "="); found && !p.rest && p.flag == nil {
		if p = follow(app.Model.Node, append(slices.Clip(before), flag)); p.flag == nil {
			return nil
		}
		prefix, begin = flag+"=", value
	}
	for _, word := range p.next(begin) {
		if name, help := word[0], word[1]; strings.HasPrefix(name, begin) && inShells().MatchString(name) {
			fmt.Fprintf(w.stdout, "%s%s\t%s\n", prefix, name, firstLine(help, maxDescription))
		}
	}
	return nil
}

// place is where a command line has got to.
type place struct {
	node   *kong.Node
	given  int         // arguments
	flag   *kong.Value // whose value is next; nil = none
	rest   bool        // after --, where another program's command line begins
	config []string
}

// follow follows words from a command downward.
func follow(node *kong.Node, words []string) *place {
	p := &place{node: node}
	for _, word := range words {
		switch {
		case p.flag != nil:
			p.set(word)
		case word == "--":
			p.rest = true
			return p
		case strings.HasPrefix(word, "-"):
			name, value, found := strings.Cut(word, "=")
			i := slices.IndexFunc(p.flags(), func(f *kong.Flag) bool { return "--"+f.Name == name })
			if i < 0 || p.flags()[i].IsBool() {
				continue
			}
			if p.flag = p.flags()[i].Value; found {
				p.set(value)
			}
		default:
			i := slices.IndexFunc(shown(p.node), func(n *kong.Node) bool { return n.Name == word })
			if i < 0 {
				p.given++
				continue
			}
			p.node, p.given = shown(p.node)[i], 0
		}
	}
	return p
}

// set gives the flag its value.
func (p *place) set(value string) {
	if p.flag.Name == "config" {
		p.config = append(p.config, value)
	}
	p.flag = nil
}

// command returns the command that runs here.
func (p *place) command() *kong.Node {
	if p.node.DefaultCmd != nil {
		return p.node.DefaultCmd
	}
	return p.node
}

func (p *place) flags() []*kong.Flag { return slices.Concat(p.command().AllFlags(true)...) }

// next returns the words that may follow, with what they mean.
func (p *place) next(begin string) (words [][2]string) {
	arguments := p.command().Positional
	switch {
	case p.rest:
	case p.flag != nil:
		words = p.values(p.flag)
	case strings.HasPrefix(begin, "-"):
		for _, f := range p.flags() {
			words = append(words, [2]string{"--" + f.Name, f.Help})
		}
	case len(p.node.Children) > 0 && p.given == 0:
		for _, n := range shown(p.node) {
			words = append(words, [2]string{n.Name, n.Help})
		}
	case p.given < len(arguments):
		words = p.values(arguments[p.given])
	}
	return words
}

// values returns the values of a flag or an argument, as far as they are known.
func (p *place) values(v *kong.Value) (words [][2]string) {
	add := func(name, help string) { words = append(words, [2]string{name, help}) }
	for _, value := range v.EnumSlice() {
		add(value, "")
	}
	kind := v.Tag.Get("completes")
	if kind == "client" {
		for _, c := range clients.All() {
			add(c.Name, c.Title)
		}
	}
	if kind != "server" && kind != "tool" {
		return words
	}
	cfg, err := config.Load(p.config, config.Options{})
	if err != nil {
		return nil // the command itself will say it
	}
	var tools map[string][]string
	if folder, err := cfg.StateFolder(); err == nil && kind == "tool" {
		tools = pins.Names(folder)
	}
	for _, s := range cfg.Servers {
		if kind == "server" {
			add(s.Name, s.Type)
		}
		for _, tool := range slices.Sorted(slices.Values(tools[s.Name])) {
			add(s.Name+"__"+tool, "")
		}
	}
	return words
}
