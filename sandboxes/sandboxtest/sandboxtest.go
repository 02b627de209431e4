// Package sandboxtest is the conformance suite of package sandboxes: the tests that every provider must pass. A provider's
// own test calls [Run]; only tests use this package.
//
// Inside the sandbox the suite needs only sh, cat, sleep and, if available, setsid or perl. It waits for events, and never
// for a fixed time.
package sandboxtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Options describes the differences between providers.
type Options struct {
	// Denied lists variables of the provider's host environment that no command may see.
	Denied []string
	// Inherited lists entries ("K=V") of the provider's host environment that commands must see.
	Inherited []string
	// Worktree returns an empty folder that the provider can use; nil means t.TempDir.
	Worktree func(t *testing.T) string
	// Shared is a host folder that every sandbox shows at the same path and everybody can write to. Providers that copy the
	// worktree need it: the tests observe processes inside through a FIFO.
	Shared string
}

// Run runs the suite. provider returns a new provider value for each call. The subtests run in parallel, after a first one
// that detects calls that ignore their context.
func Run(t *testing.T, provider func(t *testing.T) sandboxes.Provider, o Options) {
	t.Helper()
	if o.Worktree == nil {
		o.Worktree = func(t *testing.T) string { return t.TempDir() }
	}
	if !t.Run("context/every call obeys it", func(t *testing.T) {
		if err := checkContexts(t.Context(), provider(t), sandboxes.Spec{Run: runID(t), Worktree: o.Worktree(t)}); err != nil {
			t.Fatal(err)
		}
	}) {
		return // each other test would hang as long
	}
	groups := []map[string]func(*suite){openCases, outputCases, inputCases, environmentCases, endCases, closeCases}
	if provider(t).Capabilities().Home {
		groups = append(groups, homeCases)
	}
	for _, group := range groups {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(&suite{T: t, provider: provider, options: o})
			})
		}
	}
}

// suite is the state of one subtest.
type suite struct {
	*testing.T
	provider func(t *testing.T) sandboxes.Provider
	options  Options
}

var errStop = errors.New("the test stops it")

// limit ends a hanging test. It is much longer than any expected event.
const limit = time.Minute

// boundedContext returns a context that bounds the test.
func (s *suite) boundedContext() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("the test hangs"))
	s.Cleanup(cancel)
	return ctx
}

// room is an open sandbox and its worktree on the host.
type room struct {
	sandboxes.Sandbox
	*suite
	run, host string
	pipe      string // path of the lifeline
}

// open opens a sandbox that is closed when the test ends.
func (s *suite) open(env ...string) *room {
	s.Helper()
	return s.openOn(s.options.Worktree(s.T), env...)
}

// openOn opens a sandbox on a host folder.
func (s *suite) openOn(host string, env ...string) *room {
	s.Helper()
	return s.openSpec(sandboxes.Spec{Worktree: host, Env: env})
}

// openSpec opens a sandbox for a spec. It sets Run, and Worktree if empty.
func (s *suite) openSpec(spec sandboxes.Spec) *room {
	s.Helper()
	if spec.Worktree == "" {
		spec.Worktree = s.options.Worktree(s.T)
	}
	r := &room{suite: s, host: spec.Worktree, run: runID(s.T)}
	spec.Run = r.run
	r.pipe = filepath.Join(r.host, "lifeline")
	if s.options.Shared != "" {
		r.pipe = filepath.Join(s.options.Shared, rand.Text())
		spec.Env = append(spec.Env, "LIFELINE="+r.pipe)
	}
	r.Sandbox = openBox(s.boundedContext(), s.T, s.provider(s.T), spec)
	return r
}

// openBox opens a sandbox that is closed when the test ends.
func openBox(ctx context.Context, t *testing.T, p sandboxes.Provider, spec sandboxes.Spec) sandboxes.Sandbox {
	t.Helper()
	box, err := p.Open(ctx, spec)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { closeNow(t, box) })
	return box
}

// runID returns an id that is unique on this machine.
func runID(t *testing.T) string {
	return fmt.Sprintf("test-%d-%d-%s", os.Getpid(), time.Now().UnixNano(), filepath.Base(t.Name()))
}

// sh returns a command that runs a script in the shell inside, and buffers with its output.
func sh(script string, args ...string) (sandboxes.Command, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return sandboxes.Command{
		Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &errs,
	}, &out, &errs
}

// text runs a script that must succeed, and returns its standard output.
func (r *room) text(script string, args ...string) string {
	r.Helper()
	cmd, out, errs := sh(script, args...)
	r.expectExit(cmd, sandboxes.Exit{})
	if errs.Len() > 0 {
		r.Fatalf("stderr of %q: %s", script, errs)
	}
	return out.String()
}

// expectExit runs a command and checks its Exit.
func (r *room) expectExit(cmd sandboxes.Command, want sandboxes.Exit) {
	r.Helper()
	got, err := r.Exec(r.boundedContext(), cmd)
	if err != nil {
		r.Fatalf("Exec %q: %v", cmd.Argv, err)
	}
	if got != want {
		r.Fatalf("Exec %q ended with %+v, want %+v", cmd.Argv, got, want)
	}
}

// result is the result of a started Exec.
type result struct {
	exit sandboxes.Exit
	err  error
}

// start runs a command in the background.
func (r *room) start(ctx context.Context, cmd sandboxes.Command) <-chan result {
	done := make(chan result, 1)
	go func() {
		exit, err := r.Exec(ctx, cmd)
		done <- result{exit, err}
	}()
	return done
}

// await waits for a started command.
func (r *room) await(done <-chan result) result {
	r.Helper()
	select {
	case got := <-done:
		return got
	case <-r.boundedContext().Done():
		r.Fatal("Exec does not return")
		return result{}
	}
}

// copies reports whether the worktree inside is a copy.
func (s *suite) copies() bool { return s.provider(s.T).Capabilities().Files == sandboxes.Copy }

// write writes a file into the worktree: on the host or, if the worktree is copied, inside.
func (r *room) write(name string, content []byte) {
	r.Helper()
	if r.copies() {
		r.expectExit(sandboxes.Command{Argv: []string{"sh", "-c", `cat >"$1"`, "sh", name}, Stdin: bytes.NewReader(content)}, sandboxes.Exit{})
		return
	}
	if err := os.WriteFile(filepath.Join(r.host, name), content, 0o644); err != nil {
		r.Fatal(err)
	}
}

// randomBytes returns n reproducible pseudo-random bytes of all values.
func randomBytes(n int, seed uint32) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

// detachScript defines the shell function detach, which runs a program outside the session, or at least outside the process group.
const detachScript = `detach() {
	if command -v setsid >/dev/null; then setsid "$@"
	elif command -v perl >/dev/null; then perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' -- "$@"
	else set -m; "$@"; fi
}
`

// shorten keeps failure messages short.
func shorten(b []byte) string {
	if len(b) > 200 {
		return fmt.Sprintf("%q… (%d bytes)", b[:200], len(b))
	}
	return strings.TrimSpace(fmt.Sprintf("%q", b))
}
