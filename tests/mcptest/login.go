package mcptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Mailbox is a server, for use behind an OAuth, where each user has tools of its own: whoami and of_USER.
func Mailbox() *Server {
	const object = `"inputSchema":{"type":"object"}`
	return &Server{Stateless: true, OnHTTP: func(w http.ResponseWriter, r *http.Request, m Message) bool {
		result, user := "", r.Header.Get("X-User")
		switch m.Method {
		case "tools/list":
			result = fmt.Sprintf(`{"tools":[{"name":"whoami","description":"Tells whose mailbox it is",%s},{"name":"of_%s",%[1]s}]}`,
				object, user)
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"mail of %s"}]}`, user)
		default:
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, m.Response(result))
		return true
	}}
}

var owner = regexp.MustCompile(`(?:mail of |of_)([\w-]+)`)

// Owners returns the users of a Mailbox whose mail or tools a text has.
func Owners(text string) (users []string) {
	for _, found := range owner.FindAllStringSubmatch(text, -1) {
		users = append(users, found[1])
	}
	return users
}

// Browser is the browser of a person, whom an OAuth knows by a cookie.
type Browser struct{ http.Client }

// NewBrowser returns a browser. Call CloseIdleConnections after use.
func NewBrowser(person string) *Browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // it never fails
	}
	jar.SetCookies(&url.URL{Scheme: "http", Host: "127.0.0.1"}, []*http.Cookie{{Name: "person", Value: person}})
	return &Browser{http.Client{Jar: jar, Transport: &http.Transport{}, Timeout: time.Minute}}
}

// Enter shows a key on the page of the router at an address, and goes where that leads.
func (b *Browser) Enter(address, key string) (status int, page string, err error) {
	status, page, err = Page(b.Get(address))
	switch {
	case err != nil:
		return status, page, err
	case !strings.Contains(page, "<form"):
		return status, page, fmt.Errorf("%s: got %d %s, want a form", address, status, page)
	}
	return Page(b.PostForm(address, url.Values{"key": {key}}))
}

// Page returns the page that a response has.
func Page(resp *http.Response, err error) (status int, page string, _ error) {
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
