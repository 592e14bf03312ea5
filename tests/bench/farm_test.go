package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// The farm of the scaling benchmarks.
const (
	farmServers = 1000
	farmTools   = 100 // of each server
)

// farm is many servers with generated tools behind one listener, each announcing changes of its list on a
// stream.
type farm struct {
	*httptest.Server
	servers []*farmServer
}

type farmServer struct {
	mu      sync.Mutex
	list    []byte // the result of tools/list
	tools   []json.RawMessage
	changes int
	streams map[chan struct{}]bool
}

// newFarm starts a farm of so many servers, the same ones each time.
func newFarm(tb testing.TB, servers int) *farm {
	tb.Helper()
	f := &farm{}
	words := newVocabulary()
	for i := range servers {
		s := &farmServer{streams: map[chan struct{}]bool{}}
		for j := range farmTools {
			s.tools = append(s.tools, words.tool(i, j))
		}
		s.publish()
		f.servers = append(f.servers, s)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	tb.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// configs returns the configuration of the servers.
func (f *farm) configs(session string) (out []downstream.ServerConfig) {
	for i := range f.servers {
		out = append(out, downstream.ServerConfig{Name: fmt.Sprintf("server%d", i), Type: downstream.TransportHTTP, URL: f.URL + "/" + strconv.Itoa(i), Session: session})
	}
	return out
}

func (f *farm) serve(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	if err != nil || i >= len(f.servers) {
		http.NotFound(w, r)
		return
	}
	s := f.servers[i]
	switch r.Method {
	case http.MethodGet:
		s.stream(w, r)
		return
	case http.MethodDelete:
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	var result []byte
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "s"+strconv.Itoa(i))
		result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"farm","version":"1"}}`)
	case "tools/list":
		s.mu.Lock()
		result = s.list
		s.mu.Unlock()
	case "tools/call":
		result = []byte(`{"content":[{"type":"text","text":"done"}]}`)
	case "ping":
		result = []byte(`{}`)
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(jsonrpc.Result(m.ID, result))
}

func (s *farmServer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	s.streams[wake] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.streams, wake)
		s.mu.Unlock()
	}()
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-wake:
			_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		}
	}
}

// heard waits until every server has a stream on which changes can be announced.
func (f *farm) heard(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		deaf := 0
		for _, s := range f.servers {
			s.mu.Lock()
			if len(s.streams) == 0 {
				deaf++
			}
			s.mu.Unlock()
		}
		if deaf == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d servers have no stream", deaf)
		}
	}
}

// change replaces the description of one tool and announces it.
func (s *farmServer) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.tools[0] = json.RawMessage(fmt.Sprintf(`{"name":"changing_tool","description":"Return revision %d of the report","inputSchema":{"type":"object"}}`, s.changes))
	s.publish()
	for wake := range s.streams {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

func (s *farmServer) publish() {
	s.list, _ = json.Marshal(map[string]any{"tools": s.tools})
}

// vocabulary makes up tools: verbs, things and qualities, a few frequent and most rare, as in real catalogs.
type vocabulary struct {
	random *rand.Rand
	things []string
	common *rand.Zipf
}

var farmVerbs = strings.Fields("get list create update delete search send fetch read write export import convert calculate validate schedule cancel archive restore merge")

func newVocabulary() *vocabulary {
	v := &vocabulary{random: rand.New(rand.NewPCG(9, 1))}
	roots := strings.Fields("account invoice order customer ticket report message calendar event file folder image video payment refund product price stock weather flight hotel booking user team project task comment branch commit issue release server database table query metric alert log backup key secret policy contract lead campaign email contact phone address map route city country currency rate tax salary employee shift machine sensor device patient doctor recipe song playlist game player score match news article page form survey vote")
	endings := strings.Fields("history status details summary template draft version owner limit quota group label settings archive batch preview")
	v.things = append(v.things, roots...)
	for i := range 3000 {
		v.things = append(v.things, roots[i%len(roots)]+"_"+endings[i/len(roots)%len(endings)]+strconv.Itoa(i/len(roots)/len(endings)))
	}
	v.common = rand.NewZipf(v.random, 1.1, 8, uint64(len(v.things)-1))
	return v
}

func (v *vocabulary) thing() string { return v.things[v.common.Uint64()] }

func (v *vocabulary) tool(server, nth int) json.RawMessage {
	verb, what, with := farmVerbs[v.random.IntN(len(farmVerbs))], v.thing(), v.thing()
	spoken := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
	def, _ := json.Marshal(map[string]any{
		"name":        fmt.Sprintf("%s_%s_%d", verb, what, nth),
		"description": fmt.Sprintf("%s the %s of a %s in system %d. Returns the %s and its %s.", verb, spoken(what), spoken(with), server, spoken(v.thing()), spoken(v.thing())),
		"annotations": map[string]bool{"readOnlyHint": true},
		"inputSchema": map[string]any{"type": "object", "required": []string{"id"}, "properties": map[string]any{
			"id": map[string]any{"type": "string", "description": "Identifier of the " + spoken(what)},
			strings.ReplaceAll(with, "_", "") + "_id": map[string]any{"type": "integer", "description": "Which " + spoken(with) + " is meant"},
		}},
	})
	return def
}

// farmQuestions are what the benchmarks ask.
var farmQuestions = []string{
	"current weather in Rome", "send an email to the customer about the invoice", "list all open tickets of a team",
	"create a calendar event and then send a message to the project team", "convert the price of a product to another currency",
	"search the flight history and book a hotel", "export the report of the database metrics", "what is the tax rate of this country?",
	"restore the backup of the server settings", "delete the draft of the survey template", "get the playlist of a user",
	"cancel the shift of an employee and update the schedule, then log the alert",
}
