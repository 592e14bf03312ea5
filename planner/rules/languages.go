package rules

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed languages.txt
var languagesText string

// languageNames are the English names of languages by their codes: "es" is Spanish.
var languageNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(languagesText) {
		if code, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && code != "#" {
			names[code] = name
		}
	}
	return names
})
