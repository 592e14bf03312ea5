// Package registry searches registries of MCP servers that speak the API of the official one. [Search] asks a registry;
// [Entry.Add] returns the command line that adds what it has found. What a registry says is untrusted: it is bounded,
// cleaned, and goes into a command line only if no shell and no program can take it for something else.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Official is the address of the official registry.
const Official = "https://registry.modelcontextprotocol.io"

// Bounds of a search.
const (
	maxTime  = 15 * time.Second
	maxBytes = 8 << 20 // of the answer
	page     = 100     // servers asked for; the most that the official registry gives at once
	maxText  = 300     // of a text that is shown, in bytes

	maxRedirects = 5
)

// Entry is a server in a registry, with texts for people on one line.
type Entry struct {
	Name        string // such as io.github.user/weather
	Version     string
	Description string
	Deprecated  bool

	detail detail
}

// answer is what a registry says, as far as it is used.
type answer struct {
	Servers []struct {
		Server detail
		Meta   struct {
			Official struct{ Status string } `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	}
}

// detail is a server.json.
type detail struct {
	Name, Title, Description, Version string
	Packages                          []packaged
	Remotes                           []transport
}

type packaged struct {
	RegistryType, RegistryBaseURL, Identifier, Version string
	Transport                                          transport
	PackageArguments                                   []input
	EnvironmentVariables                               []input
}

type transport struct {
	Type, URL string
	Headers   []input
}

// input is a variable, a header or an argument.
type input struct {
	Type, Name, Value, Default, ValueHint, Description string
	IsRequired, IsSecret                               bool
}

// Search returns the servers in a registry whose names have the longest of the words, and whose names, titles or
// descriptions have the others, in the order of the registry, at most so many. It takes 15 seconds at most. address is
// that of the registry, with or without the version of its API. Errors are one line.
func Search(ctx context.Context, address string, words []string, most int) ([]Entry, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the registry: want an address such as " + Official)
	}
	words = strings.Fields(strings.ToLower(strings.Join(words, " ")))
	longest := ""
	for _, word := range words {
		if len(word) > len(longest) {
			longest = word
		}
	}
	if !strings.HasSuffix(u.Path, "/v0") && !strings.HasSuffix(u.Path, "/v0.1") {
		u = u.JoinPath("v0.1")
	}
	u = u.JoinPath("servers")
	u.RawQuery = url.Values{"search": {longest}, "version": {"latest"}, "limit": {strconv.Itoa(page)}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	found, err := get(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("the registry %s %w", u.Host, err)
	}
	var all []Entry
	for _, s := range found.Servers {
		d, status := s.Server, s.Meta.Official.Status
		text := strings.ToLower(d.Name + " " + d.Title + " " + d.Description)
		lacks := slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
		known := slices.ContainsFunc(all, func(e Entry) bool { return e.detail.Name == d.Name })
		if lacks || known || status == "deleted" || len(all) == most {
			continue
		}
		all = append(all, Entry{line(d.Name), line(d.Version), line(d.Description), status == "deprecated", d})
	}
	return all, nil
}

// client does not follow a redirect that leaves https, and only a few others.
var client = http.Client{CheckRedirect: func(next *http.Request, before []*http.Request) error {
	switch {
	case next.URL.Scheme != "https" && before[len(before)-1].URL.Scheme == "https":
		return errors.New("it redirects from https to " + next.URL.Scheme)
	case len(before) == maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}}

func get(ctx context.Context, u *url.URL) (found answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return found, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no answer within " + maxTime.String())
		}
		return found, fmt.Errorf("cannot be reached: %w; --registry names another", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return found, fmt.Errorf("answers %s; is it a registry of MCP servers?", line(response.Status))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	switch {
	case err != nil:
		return found, fmt.Errorf("cuts off its answer: %w", err)
	case len(body) > maxBytes:
		return found, fmt.Errorf("answers more than %d bytes", maxBytes)
	case json.Unmarshal(body, &found) != nil || found.Servers == nil:
		return found, errors.New("gives another answer than a registry of MCP servers")
	}
	return found, nil
}

// line returns an untrusted text for people.
func line(text string) string { return texts.Line(texts.Visible(text), maxText) }
