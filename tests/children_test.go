package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// readable makes a folder that a user other than root may use, as the test may run as root.
func readable(t *testing.T) (dir string, user *syscall.Credential) {
	t.Helper()
	dir = t.TempDir()
	if os.Getuid() != 0 {
		return dir, nil
	}
	const nobody = 65534
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: nobody, Gid: nobody}
}

// write writes an executable file.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A child of the same user reads neither environment nor memory of the router, gets none of its variables but the four
// that every program needs, and none of its files.
func TestChildrenCannotReadTheRouter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	dir, user := readable(t)
	script := filepath.Join(dir, "server")
	write(t, script, `#!/bin/sh
{
	for f in environ mem maps fd/0; do
		(: </proc/$PPID/$f) && echo "read $f"
	done
	ls -l /proc/$PPID/fd
} >found 2>/dev/null
env | cut -d= -f1 | sort >names
ls /proc/self/fd >files
tr '\0' ' ' </proc/$PPID/cmdline >parent
echo >done
exec cat
`)
	write(t, filepath.Join(dir, "nexus.yaml"), `mcpServers: {spy: {command: `+script+`, cwd: `+dir+`, env: {OWN: "${GIVEN}"}}}`)
	secret, err := os.Open(script)
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	copied := filepath.Join(dir, "nexus") // where the user may run it
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	write(t, copied, string(binary))
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"tools"}} {
		cmd := exec.Command(copied, append(args, "--config", filepath.Join(dir, "nexus.yaml"))...)
		cmd.Dir, cmd.SysProcAttr, cmd.ExtraFiles = dir, &syscall.SysProcAttr{Credential: user}, []*os.File{secret}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "NEXUS_API_KEY=secret", "GIVEN=given", "OPENAI_API_KEY=secret"}
		var log mcptest.Log
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if args[0] == "serve" { // what starts the child is the first list
			mcptest.Eventually(t, "it listens", func() bool { return strings.Contains(log.String(), "listening") })
			address, _, _ := strings.Cut(log.String()[strings.Index(log.String(), "address=")+len("address="):], "\n")
			ask := exec.Command(program, "tools", "--remote", "http://"+strings.Fields(address)[0])
			ask.Env = cmd.Env
			if err := ask.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = ask.Process.Kill()
				_ = ask.Wait() // it is killed
			}()
		}
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			return strings.TrimSpace(string(text))
		}
		mcptest.Eventually(t, "the child has looked around", func() bool {
			_, err := os.Stat(filepath.Join(dir, "done"))
			return err == nil
		})
		if parent := read("parent"); !strings.Contains(parent, args[0]) {
			t.Errorf("the parent is %q", parent)
		}
		if found := read("found"); found != "" {
			t.Errorf("%s: got %q, want that the child reads nothing of the router", args[0], found)
		}
		names := slices.DeleteFunc(strings.Fields(read("names")), func(name string) bool {
			return name == "PWD" || name == "_" || name == "SHLVL" || name == "OLDPWD" // of the shell
		})
		if got := fmt.Sprint(names); got != "[HOME OWN PATH]" {
			t.Errorf("%s: got the variables %s", args[0], got)
		}
		if files := strings.Fields(read("files")); len(files) != 4 { // 0 to 2, and the list itself
			t.Errorf("%s: got the open files %v", args[0], files)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its exit code does not matter
		for _, name := range []string{"done", "found", "names", "files", "parent"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}

// The example of a sandbox serves tools, and hides files, processes and networks from the server.
func TestExampleSandbox(t *testing.T) {
	config := example(t, "sandbox.yaml", "bwrap", "sh")
	if out, err := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("bwrap cannot make a sandbox here: %s", out)
	}
	dir := t.TempDir()
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nexus"), string(binary))
	write(t, filepath.Join(dir, "server"), `#!/bin/sh
{ ls / /data; ls /proc | grep -c '^[0-9]'; cat /etc/passwd /root/* `+config+`; tail -n +3 /proc/net/dev | grep -v lo:; } >/data/seen 2>/dev/null
exec /data/nexus stdio --demo
`)
	cmd := command(t.TempDir(), "tools", "--config", config)
	cmd.Env = append(cmd.Env, "SANDBOX_DATA="+dir, "SANDBOX_PROGRAM=/data/server")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "process_query") {
		t.Fatalf("got %v and %s, want the tools of the server", err, out)
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	want := []string{"/:", "bin", "data", "dev", "lib", "lib64", "proc", "tmp", "usr", "/data:", "nexus", "seen", "server"}
	if got := strings.Fields(string(seen)); err != nil || len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) || len(got[len(want)]) != 1 {
		t.Errorf("got %v, %v, want that the server sees %v and its own few processes", got, err, want)
	}
}
