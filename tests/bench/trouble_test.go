package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// BenchmarkTrouble reports what it costs queries that the collector or the disk of the history is in trouble: their CPU
// and their time, as ratios to a program with all of it that is in none. All programs take turns. Disks need root.
func BenchmarkTrouble(b *testing.B) {
	const rounds, callers, queries = 400, 4, 40
	const settings = "rate_limit: {tools: []}\n"
	const query = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"Run it",
		"plan":[{"tool":"tool"},{"tool":"tool","arguments":{"before":"$s1"}}]}}}`
	const traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="
	bin := build(b)
	fine := traces + collector(b, 0)
	start := func(env ...string) *program {
		p := run(b, bin, "shared", settings, answer, env...)
		p.path = "/mcp"
		return p
	}
	rivals := []*rival{
		{name: "none", program: start(fine)},
		{name: "none-again", program: start(fine)}, // how far two of the same are apart
		{name: "blocked-collector", program: start(traces + collector(b, -1))},
		{name: "slow-collector", program: start(traces + collector(b, 2*time.Second))},
		{name: "no-collector", program: start(traces + "http://127.0.0.1:1")},
	}
	for _, d := range []struct {
		name string
		disk func(*testing.B) (folder string, trouble func(), err error)
	}{{"full-disk", fullDisk}, {"blocked-disk", blockedDisk}, {"slow-disk", slowDisk}} {
		folder, trouble, err := d.disk(b)
		if err != nil {
			b.Logf("%s is left out: %v", d.name, err)
			continue
		}
		rivals = append(rivals, &rival{name: d.name, program: start(fine, "NEXUS_STATE="+folder)})
		trouble()
	}
	for b.Loop() {
		takeTurns(rivals, rounds, func(p *program) {
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range queries / callers {
						if resp := p.post("", query); resp != nil {
							drain(resp)
						}
					}
				})
			}
			all.Wait()
		})
	}
	for _, r := range rivals {
		b.ReportMetric(ratio(r.spent, rivals[0].spent), r.name+"-cpu/none")
		b.ReportMetric(ratio(r.took, rivals[0].took), r.name+"-time/none")
	}
}

// mount mounts a file system on a new folder until the benchmark ends.
func mount(b *testing.B, args ...string) (folder string, err error) {
	folder = b.TempDir()
	if err := command("mount", append(args, folder)...); err != nil {
		return "", err
	}
	b.Cleanup(func() {
		if err := command("umount", folder); err != nil {
			b.Error(err)
		}
	})
	return folder, nil
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return errors.New(name + ": " + err.Error() + ": " + string(out))
	}
	return nil
}

// fullDisk returns a folder on a disk that trouble fills.
func fullDisk(b *testing.B) (folder string, trouble func(), err error) {
	folder, err = mount(b, "-t", "tmpfs", "-o", "size=1m", "none")
	return folder, func() {
		if err := os.WriteFile(filepath.Join(folder, "filler"), make([]byte, 2<<20), 0o600); err == nil {
			b.Error("the disk is not full")
		}
	}, err
}

// blockedDisk returns a folder on a disk of its own whose writes block once there is trouble.
func blockedDisk(b *testing.B) (folder string, trouble func(), err error) {
	image := filepath.Join(b.TempDir(), "disk")
	if err := os.WriteFile(image, make([]byte, 64<<20), 0o600); err != nil {
		return "", nil, err
	}
	if err := command("mkfs.ext4", "-q", image); err != nil {
		return "", nil, err
	}
	folder, err = mount(b, "-o", "loop", image)
	return folder, func() {
		if err := command("fsfreeze", "-f", folder); err != nil {
			b.Error(err)
			return
		}
		b.Cleanup(func() { _ = command("fsfreeze", "-u", folder) })
	}, err
}

// slowDisk is blockedDisk with a disk that writes for a tenth of the time.
func slowDisk(b *testing.B) (folder string, trouble func(), err error) {
	folder, _, err = blockedDisk(b)
	return folder, func() {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				_ = command("fsfreeze", "-f", folder)
				ended := wait(stop, 900*time.Millisecond)
				_ = command("fsfreeze", "-u", folder)
				if ended || wait(stop, 100*time.Millisecond) {
					return
				}
			}
		}()
		b.Cleanup(func() { close(stop); <-done })
	}, err
}

// wait reports whether stop is closed within a time.
func wait(stop chan struct{}, limit time.Duration) bool {
	select {
	case <-stop:
		return true
	case <-time.After(limit):
		return false
	}
}
