package escapetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Options says what the suite may expect of a provider.
type Options struct {
	// Program is a host path of the test program that the provider can show; empty means the one that runs.
	Program string
	// InPlace says that the provider shows a file only at its own path.
	InPlace bool
	// Looking says that the provider bounds processes by looking at them: a fork bomb is then ended as it is lit, because
	// nothing else would keep it from the machine that the test runs on.
	Looking bool
	// Shared is a folder of the host that is shown inside at the same path; empty means that the worktree is.
	Shared string
	// Weak are the attacks that the provider's documentation says it does not stop: by the name of the subtest, what the
	// suite says of each. One that is stopped has to leave the list.
	Weak map[string][]string
	// Unheld are the names of the cases that the provider, as its documentation says, does not hold at all, so that it is
	// chance what ends: the sandbox or, with nothing else to bound it, the machine. They do not run.
	Unheld []string
	// Owner is the user, and the group, that the worktree and the private repository are given to, for a provider that
	// runs commands as their owner; 0 means whoever runs the test.
	Owner int
}

// Run runs the suite. provider makes a new provider value; it is called several times. The subtests run in parallel.
func Run(t *testing.T, provider func(t *testing.T) sandboxes.Provider, o Options) {
	t.Helper()
	if o.Program == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Program = self
	}
	for _, group := range []func() map[string]func(*suite){
		privilegeCases, secretCases, networkCases, exhaustCases, fileCases, helperCases,
	} {
		for name, test := range group() {
			if slices.Contains(o.Unheld, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := &suite{T: t, provider: provider(t), program: o.Program, attacker: attacker, owner: o.Owner, shared: o.Shared, looking: o.Looking}
				if o.InPlace {
					s.attacker = o.Program
				}
				for _, w := range o.Weak[name] {
					s.weak = append(s.weak, &weakness{text: w})
				}
				test(s)
				s.weakStill()
			})
		}
	}
}

// suite is one subtest.
type suite struct {
	*testing.T
	provider sandboxes.Provider
	program  string
	attacker string // where the program is inside
	owner    int    // of the worktree; 0 means whoever runs the test
	shared   string // a folder of the host inside; empty: the worktree is
	looking  bool   // processes are bounded by looking
	weak     []*weakness
}

// inPlace reports whether the provider shows a file only at its own path.
func (s *suite) inPlace() bool { return s.attacker == s.program }

// limit ends a test that would hang, long after any event it waits for.
const limit = time.Minute

// attacker is where the test program is shown inside, where the provider can choose.
const attacker = "/srv/attacker"

func (s *suite) bounded() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("the test hangs"))
	s.Cleanup(cancel)
	return ctx
}

// room is an open sandbox on a worktree with all that a run has.
type room struct {
	sandboxes.Sandbox
	*suite
	host string // a folder of the host that holds all that follows, and secrets beside it
	spec sandboxes.Spec
}

// secret is in a file of the host that no sandbox may see.
const secret = "the-secret-of-the-host"

// open opens a sandbox; change may adapt its spec.
func (s *suite) open(change func(*sandboxes.Spec)) *room {
	s.Helper()
	host, err := filepath.EvalSymlinks(s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	r := &room{suite: s, host: host, spec: sandboxes.Spec{
		Run: "escape-" + rand.Text(), Worktree: filepath.Join(host, "worktree"), GitDir: filepath.Join(host, "private"),
		Objects: []string{filepath.Join(host, "objects")}, RequireIsolation: true,
		Mounts: []sandboxes.Mount{{Host: s.program, Inside: s.attacker, ReadOnly: true}},
	}}
	for _, dir := range []string{r.spec.Worktree, r.spec.GitDir, r.spec.Objects[0], filepath.Join(host, "other")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	s.write(filepath.Join(r.spec.Worktree, ".git"), "gitdir: "+filepath.Join(host, "of-the-user")+"\n")
	s.write(filepath.Join(r.spec.Worktree, "work"), "work\n")
	s.write(filepath.Join(r.spec.Objects[0], "object"), "object\n")
	s.write(filepath.Join(host, "secret"), secret)
	s.write(filepath.Join(host, "other", "secret"), secret)
	for _, own := range []string{r.spec.Worktree, r.spec.GitDir, filepath.Join(r.spec.Worktree, ".git"), filepath.Join(r.spec.Worktree, "work")} {
		if s.owner == 0 {
			break
		}
		if err := os.Chown(own, s.owner, s.owner); err != nil {
			s.Fatal(err)
		}
	}
	if change != nil {
		change(&r.spec)
	}
	box, err := s.provider.Open(s.bounded(), r.spec)
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	r.Sandbox = box
	s.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(s.Context())); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return r
}

func (s *suite) write(path, text string) {
	s.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}

// attack lets the test program attack from inside. It says for each thing that it could do what that is.
func (r *room) attack(name string, args ...string) {
	r.Helper()
	var out bytes.Buffer
	exit, err := r.Exec(r.bounded(), sandboxes.Command{
		Argv: append([]string{r.attacker, attackMark, name}, args...), Stdout: &out, Stderr: &out,
	})
	if err != nil || !exit.OK() {
		r.Errorf("%s: %+v, %v\n%s", name, exit, err, &out)
	}
	if !strings.Contains(out.String(), attackEnd) {
		r.Errorf("%s did not come to its end:\n%s", name, &out)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, breach) {
			r.Errorf("%s: %s", name, line)
		}
	}
}

// sh runs a script inside.
func (r *room) sh(script string, args ...string) (string, sandboxes.Exit, error) {
	r.Helper()
	var out bytes.Buffer
	exit, err := r.Exec(r.bounded(), sandboxes.Command{
		Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &out,
	})
	return out.String(), exit, err
}

// works fails the test unless the sandbox goes on as before.
func (r *room) works() {
	r.Helper()
	if out, exit, err := r.sh("cat work"); err != nil || !exit.OK() || out != "work\n" {
		r.Errorf("the sandbox no longer works: %+v, %v, %s", exit, err, out)
	}
}

// unchanged fails the test when the host's side is not what it was.
func (r *room) unchanged() {
	r.Helper()
	for path, want := range map[string]string{
		filepath.Join(r.spec.Worktree, ".git"):     "gitdir: " + filepath.Join(r.host, "of-the-user") + "\n",
		filepath.Join(r.spec.Objects[0], "object"): "object\n",
		filepath.Join(r.host, "secret"):            secret,
		filepath.Join(r.host, "other", "secret"):   secret,
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			r.Errorf("%s is now %q, %v", path, got, err)
		}
	}
	entries, err := os.ReadDir(r.spec.Objects[0])
	if err != nil || len(entries) != 1 {
		r.Errorf("the object folder holds %v, %v", entries, err)
	}
	if entries, err = os.ReadDir(r.host); err != nil || len(entries) != 5 {
		r.Errorf("the host's folder holds %v, %v", entries, err)
	}
}
