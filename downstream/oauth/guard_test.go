package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What a server names is no further inside a network than the server itself.
func TestGuard_Zones(t *testing.T) {
	addresses := map[zone][]string{
		public: {
			"8.8.8.8:443", "[2001:4860:4860::8888]:443", "[64:ff9b::8.8.8.8]:443", "[64:ff9b:1::8.8.8.8]:443",
			"[64:ff9b:1:808:8:800::]:443", "[2002:808:808::1]:443", "[::ffff:8.8.8.8]:443", "[::8.8.8.8]:443",
			"[2001:0:808:808:0:0:f7f7:f7f7]:443",
		},
		private: {
			"10.1.2.3:443", "192.168.0.1:443", "100.64.0.1:443", "[fd00::1]:443", "[::ffff:10.0.0.1]:443",
			"[::10.0.0.1]:443", "[64:ff9b::10.0.0.1]:443", "[64:ff9b::192.168.0.1]:443", "[64:ff9b:1::10.0.0.1]:443",
			"[64:ff9b:1:a00:0:100::]:443", "[64:ff9b:1:a:0:1::]:443", "[64:ff9b:1::a:0:100:0]:443", "[2002:a00:1::1]:443",
			"[2001:0:808:808:0:0:f5ff:fffe]:443", "[2001:0:a00:1:0:0:f7f7:f7f7]:443",
		},
		loopback: {"127.0.0.1:443", "[::1]:443", "[64:ff9b::127.0.0.1]:443", "[2002:7f00:1::]:443"},
		forbidden: {"169.254.169.254:80", "0.0.0.0:443", "224.0.0.1:443", "[fe80::1]:443", "[::]:443",
			"[64:ff9b::169.254.169.254]:80", "[64:ff9b:1::169.254.169.254]:80", "[2002:a9fe:a9fe::]:80", "[::169.254.169.254]:80"},
	}
	for server, host := range map[zone]string{public: "8.8.8.8", private: "10.0.0.1", loopback: "127.0.0.1"} {
		g, err := newGuard(t.Context(), "https://"+host+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		for zone, list := range addresses {
			for _, address := range list {
				if err := g.inside("tcp", address, nil); (err == nil) != (zone <= server) {
					t.Errorf("server at %s, asked for %s: got %v", host, address, err)
				}
			}
		}
	}
}

func TestGuard_URLs(t *testing.T) {
	for address, want := range map[string]bool{
		"https://a.example/x": true, "http://localhost:8080/x": true, "http://127.0.0.1/x": true, "http://[::1]:1/x": true,
		"http://a.example/x": false, "http://10.0.0.1/": false, "ftp://a.example/": false, "https:///x": false,
		"https://user@a.example/": false, "javascript:alert(1)": false, "http://[::ffff:127.0.0.1]/": true, "http://[64:ff9b::127.0.0.1]/": false, "http://localhost.evil.example/": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if why := unsafeURL(u); (why == "") != want {
			t.Errorf("%s: got %q", address, why)
		}
	}
}

// Redirects are followed within their origin alone, and what has a body follows none.
func TestGuard_Redirects(t *testing.T) {
	to := "http://evil.example/"
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = reached || r.URL.Path == "/second"
		if r.URL.Path == "/first" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	g, err := newGuard(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	for _, to = range []string{"http://evil.example/", "https://evil.example/", other.URL, strings.Replace(s.URL, "http", "https", 1)} {
		resp, err := g.client().Get(s.URL + "/first")
		if err == nil {
			resp.Body.Close()
		}
		if want := "it redirects from " + s.URL + " to " + strings.TrimSuffix(to, "/") + ", which is not followed"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	to = s.URL + "/second"
	resp, err := g.client().Post(s.URL+"/first", "text/plain", strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || reached {
		t.Errorf("got status %d, want that the redirect is not followed", resp.StatusCode)
	}
	resp, err = g.client().Get(s.URL + "/first")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !reached {
		t.Error("a redirect of a request without a body is not followed")
	}
}
