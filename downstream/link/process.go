package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/stderr"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	exitTimeout   = 2 * time.Second        // for the child to end after its input is closed, and again after SIGTERM
	outputTimeout = 500 * time.Millisecond // for the last output of a child, and for its exit status
	wordsTimeout  = 2 * time.Second        // for the last read of its error output, and again for what was read
	maxStderr     = 4 << 10                // bytes kept of a line of the child's error output
	maxReadStderr = 64 << 10               // bytes read of it, so that no secret is cut before it is masked
)

// process is a child in its own process group, with its input and output as one byte stream.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	stderr  *os.File
	err     error         // result of Wait; valid once exited is closed
	exited  chan struct{} // closed when the child has exited
	quiet   chan struct{} // closed when its error output has been read
	once    sync.Once
	errors  stderr.Tail // the end of its error output
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p *process) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// startProcess starts the target's command. Its goroutines belong to the session.
func startProcess(s *Session) (*process, error) {
	t := s.opts.Target
	p := &process{exited: make(chan struct{}), quiet: make(chan struct{})}
	p.cmd = exec.Command(t.Command[0], t.Command[1:]...)
	p.cmd.Dir = t.Dir
	p.cmd.Env = []string{}           // never nil: that would inherit everything
	for _, name := range inherited { // no others: they may hold keys
		if v, ok := os.LookupEnv(name); ok {
			p.cmd.Env = append(p.cmd.Env, name+"="+v)
		}
	}
	for name, v := range t.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+v.Reveal())
	}
	setGroup(p.cmd)

	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files[:])
			return nil, fmt.Errorf("creating pipes: %w", err)
		}
		files[i], files[i+1] = r, w
	}
	p.cmd.Stdin, p.in = files[0], files[1]
	p.out, p.cmd.Stdout = files[2], files[3]
	p.stderr, p.cmd.Stderr = files[4], files[5]

	started := make(chan error, 1)
	s.wg.Go(func() { p.run(started) })
	err := <-started
	closeAll([]*os.File{files[0], files[3], files[5]})
	if err != nil {
		closeAll([]*os.File{p.in, p.out, p.stderr})
		return nil, err
	}
	s.run(func() { p.readStderr(s) })
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// run starts the child and waits for it. The thread is locked because on Linux the child is signalled when the thread
// that started it ends.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	killGroup(p.cmd) // remaining processes would hold its output open
	close(p.exited)
	// The readers reach the end of the output after the child's last output, or at these times if a process that has
	// escaped the group holds the output open. A reader may lag by what is in the pipe.
	_ = p.out.SetReadDeadline(time.Now().Add(outputTimeout))
	_ = p.stderr.SetReadDeadline(time.Now().Add(wordsTimeout))
}

// ending describes how the child ended. It is called when its input or output ends, which precedes the exit.
func (p *process) ending() string {
	select {
	case <-p.exited:
	case <-time.After(outputTimeout):
		return "the process closed its input or output"
	}
	select {
	case <-p.quiet:
	case <-time.After(2 * wordsTimeout): // pipes have no deadlines on Windows
	}
	text := "the process ended"
	if p.err != nil {
		text += " with " + p.err.Error()
	}
	if cause := p.errors.Cause(); cause != "" {
		text += ": " + cause
	}
	return text
}

func (p *process) readStderr(s *Session) {
	defer close(p.quiet)
	r := bufio.NewReaderSize(p.stderr, maxReadStderr)
	for {
		line, err := r.ReadSlice('\n')
		text := s.mask.Text(texts.Visible(texts.Plain(strings.TrimRight(string(line), "\r\n"))))
		if len(text) > maxStderr {
			text = texts.Cut(strings.TrimSpace(text), maxStderr)
		}
		if strings.TrimSpace(text) != "" {
			s.opts.Logger.Debug("server wrote to its error output", "server", s.opts.Server, "line", text)
			p.errors.Add(text)
			s.opts.Errors.Add(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// stop ends the child: first by closing its input, then with SIGTERM, then with SIGKILL.
func (p *process) stop(ctx context.Context) {
	p.once.Do(func() {
		p.in.Close()
		for _, insist := range []func(*exec.Cmd){termGroup, killGroup} {
			select {
			case <-p.exited:
			case <-time.After(exitTimeout):
				insist(p.cmd)
			case <-ctx.Done():
				killGroup(p.cmd)
			}
		}
		<-p.exited
		p.out.Close()
		p.stderr.Close() // a process that has escaped the group may hold it open
	})
}
