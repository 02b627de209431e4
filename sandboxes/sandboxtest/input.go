package sandboxtest

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

var inputCases = map[string]func(*suite){
	"input/1 MiB comes back": func(s *suite) {
		want := randomBytes(1<<20, 5)
		var out bytes.Buffer
		s.open().expectExit(sandboxes.Command{
			Argv: []string{"cat"}, Stdin: bytes.NewReader(want), Stdout: &out,
		}, sandboxes.Exit{})
		if !bytes.Equal(out.Bytes(), want) {
			s.Errorf("got %s", shorten(out.Bytes()))
		}
	},
	"input/every byte value": func(s *suite) {
		want := make([]byte, 256)
		for i := range want {
			want[i] = byte(i)
		}
		var out bytes.Buffer
		s.open().expectExit(sandboxes.Command{
			Argv: []string{"cat"}, Stdin: bytes.NewReader(want), Stdout: &out,
		}, sandboxes.Exit{})
		if !bytes.Equal(out.Bytes(), want) {
			s.Errorf("got %q", out.Bytes())
		}
	},
	"input/none is empty": func(s *suite) {
		var out bytes.Buffer
		s.open().expectExit(sandboxes.Command{Argv: []string{"cat"}, Stdout: &out}, sandboxes.Exit{})
		if out.Len() > 0 {
			s.Errorf("got %q", &out)
		}
	},
	"input/not read": func(s *suite) {
		r := s.open()
		for script, want := range map[string]string{"exit 3": "", "read -r x; echo \"$x\"; exit 3": "first\n"} {
			cmd, out, _ := sh(script)
			cmd.Stdin = strings.NewReader("first\n" + strings.Repeat("more\n", 1<<18))
			r.expectExit(cmd, sandboxes.Exit{Code: 3})
			if out.String() != want {
				s.Errorf("%q prints %q, want %q", script, out, want)
			}
		}
	},
	"input/flows while the command runs": func(s *suite) {
		r := s.open()
		done, in, out := r.echo()
		in.say("one\n")
		out.await(s, "one\n")
		in.say("two\n")
		out.await(s, "one\ntwo\n")
		in.Close()
		if got := r.await(done); got.err != nil || !got.exit.OK() {
			s.Errorf("cat: %+v", got)
		}
	},
}

// echo starts a cat with an input and an output.
func (r *room) echo() (done <-chan result, in *input, out *output) {
	r.Helper()
	in, stdin := newInput(r.suite)
	out = newOutput()
	done = r.start(r.boundedContext(), sandboxes.Command{Argv: []string{"cat"}, Stdin: stdin, Stdout: out})
	return done, in, out
}

// input is the test's end of a command's standard input.
type input struct {
	*io.PipeWriter
	*suite
}

// newInput returns both ends of an input.
func newInput(s *suite) (*input, io.Reader) {
	read, write := io.Pipe()
	s.Cleanup(func() { _ = write.Close() })
	return &input{PipeWriter: write, suite: s}, read
}

func (m *input) say(text string) {
	m.Helper()
	if _, err := io.WriteString(m.PipeWriter, text); err != nil {
		m.Fatal(err)
	}
}

// Close closes the input.
func (m *input) Close() { _ = m.PipeWriter.Close() }

// output is a writer that lets a test wait for a text.
type output struct {
	mu       sync.Mutex
	received bytes.Buffer  // guarded by mu
	change   chan struct{} // guarded by mu; closed at the next Write
}

func newOutput() *output { return &output{change: make(chan struct{})} }

// Write records p and wakes a waiting test.
func (e *output) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received.Write(p)
	close(e.change)
	e.change = make(chan struct{})
	return len(p), nil
}

// await waits until exactly text was written.
func (e *output) await(s *suite, text string) {
	s.Helper()
	end := s.boundedContext().Done()
	for {
		e.mu.Lock()
		heard, change := e.received.String(), e.change
		e.mu.Unlock()
		if heard == text {
			return
		}
		select {
		case <-change:
		case <-end:
			s.Fatalf("got %q, waiting for %q", heard, text)
		}
	}
}
