package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/tests/network"
)

// fault is one thing that goes wrong.
type fault struct {
	name    string
	outcome string                // what must come of it, in the words of mcptest.Reply.Outcome
	run     func(w *world) string // lets it happen and returns what came of it
	waits   bool                  // it mostly waits for a time limit of the router
}

// suite returns all faults. Those that take long come first, so that the others run meanwhile.
func suite() []fault {
	return slices.Concat(loadFaults(), stdioFaults(), serverFaults(), refusalFaults(), sseFaults(), networkFaults(),
		clientFaults(), modelFaults(), processFaults(), reloadFaults())
}

// How many runs of a fault happen at the same time; of one that waits, if it is run that often.
const (
	atOnce  = 5
	waiting = 15
)

var runs = flag.Int("runs", 1, "how often each fault is run, at least")

// record is what the process of a fault found out.
type record struct {
	Runs, Failed int
	Slowest      time.Duration // from a request that met the fault to its outcome
}

// TestFaults runs the suite. Faults that wait for the router's own time limits all wait at the same time.
func TestFaults(t *testing.T) {
	if os.Getenv(asFault) != "" {
		t.Skip("this is the process of a fault")
	}
	dir := t.TempDir()
	faults := suite()
	records := make([]record, len(faults))
	outputs := make([]string, len(faults))
	seats := make(chan struct{}, runtime.GOMAXPROCS(0)+1)
	var wg sync.WaitGroup
	for i, f := range faults {
		wg.Go(func() {
			if !f.waits {
				seats <- struct{}{}
				defer func() { <-seats }()
			}
			records[i], outputs[i] = f.spawn(filepath.Join(dir, strconv.Itoa(i)))
		})
	}
	wg.Wait()
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Logf("%s: %d runs, the slowest %v", f.outcome, records[i].Runs, records[i].Slowest.Round(10*time.Millisecond))
			if r := records[i]; r.Runs < *runs || r.Failed > 0 {
				t.Errorf("got %d of %d runs failed, want %d runs without a failure\n%s", r.Failed, r.Runs, *runs, outputs[i])
			}
		})
	}
}

// spawn runs the fault in a process of its own and returns its record, which is empty if it crashed.
func (f fault) spawn(file string) (r record, output string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFault$", "-test.timeout=30m", "-test.parallel="+strconv.Itoa(waiting))
	cmd.Env = append(os.Environ(), asFault+"="+f.name, runsVar+"="+strconv.Itoa(*runs), recordVar+"="+file)
	out, err := cmd.CombinedOutput()
	raw, readErr := os.ReadFile(file)
	if readErr == nil {
		readErr = json.Unmarshal(raw, &r)
	}
	if err != nil || readErr != nil {
		r.Failed = max(r.Failed, 1)
		out = fmt.Appendf(out, "the process: %v, its record: %v\n", err, readErr)
	}
	return r, string(out)
}

// TestFault is what the process of a fault does.
func TestFault(t *testing.T) {
	name := os.Getenv(asFault)
	if name == "" {
		t.Skip("TestFaults runs it, in a process for each fault")
	}
	i := slices.IndexFunc(suite(), func(f fault) bool { return f.name == name })
	if i < 0 {
		t.Fatalf("got fault %q, want one of the suite", name)
	}
	f := suite()[i]
	want, err := strconv.Atoi(os.Getenv(runsVar))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("nothing", func(t *testing.T) { newWorld(t).start(nil) }) // what is made once in a process is made now
	goroutines, descriptors := goleak.IgnoreCurrent(), descriptors(t)
	var r record
	for r.Runs < want && r.Failed == 0 {
		size := atOnce
		if f.waits {
			size = waiting
		}
		r.runBatch(t, f, min(size, want))
		wantNoLeak(t, &r, goroutines, descriptors)
	}
	raw, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(os.Getenv(recordVar), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runBatch runs a fault size times at once.
func (r *record) runBatch(t *testing.T, f fault, size int) {
	var mu sync.Mutex
	t.Run("runs", func(t *testing.T) {
		for range size {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				t.Cleanup(func() { // the last of the world's own
					mu.Lock()
					defer mu.Unlock()
					r.Runs++
					r.Slowest = max(r.Slowest, w.slowest)
					if t.Failed() {
						r.Failed++
					}
				})
				if got := f.run(w); got != f.outcome {
					t.Errorf("outcome: got %q, want %q\n%s", got, f.outcome, w.log.tail())
				}
			})
		}
	})
}

// settling bounds how long what has been stopped may take to disappear.
const settling = 10 * time.Second

// wantNoLeak fails the test if goroutines or descriptors are left behind by the runs.
func wantNoLeak(t *testing.T, r *record, goroutines goleak.Option, before []string) {
	t.Helper()
	end := time.Now().Add(settling)
	for {
		leaked := goleak.Find(goroutines, goleak.IgnoreAnyFunction(network.Leftover))
		after := descriptors(t)
		switch {
		case leaked == nil && len(after) <= len(before):
			return
		case time.Now().Before(end):
			time.Sleep(20 * time.Millisecond)
			continue
		case leaked != nil:
			t.Errorf("goroutines: got %v, want none left", leaked)
		default:
			t.Errorf("descriptors: got %d, want %d:\n%s", len(after), len(before), strings.Join(after, "\n"))
		}
		r.Failed++
		return
	}
}

// descriptors returns what the process has open; nothing where there is no /proc.
func descriptors(t *testing.T) (open []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil { // the one that reads the folder is gone by now
			open = append(open, to)
		}
	}
	return open
}
