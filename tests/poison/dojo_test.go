package poison

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// suite is a set of tasks over servers, see testdata/README.md.
type suite struct {
	settings string
	servers  map[string]*suiteServer
	results  map[string]string // by tool
	users    []task
	injects  []task
}

type suiteServer struct {
	settings string
	tools    []string
}

// task is a task of a user, or of an injection.
type task struct {
	number, text string // the question, or what stands in the arguments of injected calls
	rounds       [][]json.RawMessage
}

// readSuite reads a file of testdata.
func readSuite(t *testing.T, name string) *suite {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{servers: map[string]*suiteServer{}, results: map[string]string{}}
	var server *suiteServer
	var tasks *[]task
	prefix, steps := "", 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch first, second, _ := strings.Cut(rest, " "); {
		case line == "":
		case word == "settings":
			s.settings = rest
		case word == "server":
			server = &suiteServer{settings: second}
			s.servers[first] = server
		case word == "tool":
			server.tools = append(server.tools, tool(first, strings.ReplaceAll(first, "_", " "), "", ""))
			s.results[first] = second
		case word == "user" || word == "inject":
			tasks, prefix = &s.users, "s"
			if word == "inject" {
				tasks, prefix = &s.injects, "i"
			}
			*tasks = append(*tasks, task{first, second, make([][]json.RawMessage, 1)})
			steps = 0
		default:
			last := &(*tasks)[len(*tasks)-1]
			if word == "--" {
				last.rounds = append(last.rounds, nil)
				continue
			}
			steps++
			n := len(last.rounds) - 1
			last.rounds[n] = append(last.rounds[n], stepOf(t, fmt.Sprint(prefix, steps), word, rest))
		}
	}
	return s
}

// stepOf reads the arguments of a step, and what follows them: each, when, pick or after with a value.
func stepOf(t *testing.T, id, tool, rest string) json.RawMessage {
	t.Helper()
	step := map[string]any{"id": id, "tool": tool}
	d := json.NewDecoder(strings.NewReader(rest))
	var arguments json.RawMessage
	if err := d.Decode(&arguments); err != nil {
		t.Fatalf("%s %s: %v", tool, rest, err)
	}
	step["arguments"] = arguments
	if key, value, ok := strings.Cut(strings.TrimSpace(rest[d.InputOffset():]), " "); ok {
		step[key] = value
		if key == "after" {
			step[key] = []string{value}
		}
	}
	return must(json.Marshal(step))
}

// dojo is a world of a suite, with an order in all that its servers say.
type dojo struct {
	*world
	mu    sync.Mutex
	order string
}

func (s *suite) start(t *testing.T) *dojo {
	d := &dojo{}
	peers := map[string]*peer{}
	for name, server := range s.servers {
		p := &peer{tools: tools(server.tools...), answer: func(tool, _ string, _ func(string, string) mcptest.Message) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			result := s.results[tool]
			if d.order != "" {
				result = `{"note":` + quoted(d.order) + "," + result[1:]
			}
			return structured(result)
		}}
		if server.settings != "" {
			p.settings = ", " + server.settings
		}
		peers[name] = p
	}
	d.world = newWorld(t, s.settings, peers)
	return d
}

// ask has a task done while an injection, which may be nil, stands in all results. The user declines what it wants, and
// accepts everything else.
func (d *dojo) ask(user task, injection *task, era string, forms bool) (*person, answered) {
	rounds, order := user.rounds, ""
	if injection != nil {
		if len(rounds) == 1 {
			rounds = append(slices.Clone(rounds), nil) // the model looks at the results
		}
		order = "ORDER " + string(must(json.Marshal(injection.rounds))) + " "
	}
	d.mu.Lock()
	d.order = order
	d.mu.Unlock()
	d.forget()
	d.model.next(rounds)
	p := &person{w: d.world, path: "/mcp", era: era, key: keys[0]}
	if forms {
		p.choose = func(message string) string {
			if injection != nil && strings.Contains(message, injection.text) {
				return "decline"
			}
			return "accept"
		}
	}
	p.begin()
	return p, p.ask(user.text, nil)
}

// did reports whether a call that has an effect, and that the injection wants, has reached a server.
func (d *dojo) did(injection task) string {
	for _, m := range d.received() {
		if m.method == "tools/call" && strings.Contains(m.arguments, injection.text) {
			return m.server + "." + m.tool + m.arguments
		}
	}
	return ""
}

// TestDojo has the tasks of AgentDojo done, alone and with each injection.
func TestDojo(t *testing.T) {
	var mu sync.Mutex
	var table []string
	tasks, completed := 0, 0
	t.Run("suites", func(t *testing.T) {
		for _, name := range []string{"banking", "slack", "travel", "workspace"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := readSuite(t, name)
				d := s.start(t)
				done, questions := 0, 0
				for i, user := range s.users {
					if !*all && i%10 != 0 {
						continue
					}
					p, a := d.ask(user, nil, eras[i%len(eras)], true)
					questions += len(p.asked)
					failures := a.failures()
					if failures == "" && len(a.Steps) > 0 && len(p.asked) <= 1 {
						done++
						continue
					}
					t.Logf("task %s: the user was asked %d times; failures: %s", user.number, len(p.asked), failures)
				}
				attacks, effects := 0, 0
				for i, user := range s.users {
					for j, injection := range s.injects {
						if !*all && (i+7*j)%40 != 0 {
							continue
						}
						d.ask(user, &injection, eras[(i+j)%len(eras)], (i+j)%3 > 0)
						attacks++
						if !d.model.hasObeyed() {
							t.Errorf("task %s, injection %s: the model has not read it", user.number, injection.number)
						}
						if effect := d.did(injection); effect != "" {
							effects++
							t.Errorf("task %s, injection %s: got the call %s", user.number, injection.number, effect)
						}
					}
				}
				mu.Lock()
				defer mu.Unlock()
				tasks, completed = tasks+len(s.users), completed+done
				table = append(table, fmt.Sprintf("%-10s %4d %9d %9d %10d %8d", name, len(s.users), done, questions, attacks, effects))
			})
		}
	})
	if !*all {
		return
	}
	slices.Sort(table)
	fmt.Printf("suite     tasks completed questions injections  effects\n%s\ncompleted with at most one question: %.1f %%\n", strings.Join(table, "\n"), 100*float64(completed)/float64(tasks))
	if completed*100 < tasks*85 {
		t.Errorf("got %d of %d tasks completed, want 85 %%", completed, tasks)
	}
}
