package escape

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Options are the differences between providers.
type Options struct {
	// Program is a host path of the test program that the provider can show; empty means the one that runs.
	Program string
	// InPlace says that the provider shows a file only at its own path.
	InPlace bool
	// Looking says that the provider limits processes by polling them: the suite then ends a fork bomb early, because nothing
	// else would protect the machine that the test runs on.
	Looking bool
	// Shared is a folder of the host that is shown inside at the same path; empty means that the worktree is.
	Shared string
	// Layered shows the worktree over a lower folder, if the provider can.
	Layered bool
	// Weak are the attacks that, by its documentation, the provider does not stop: by the name of the subtest, the texts of
	// the suite's reports. An attack that is stopped has to leave the list.
	Weak map[string][]string
	// Unsafe are the names of the cases that, by its documentation, the provider does not stop at all, so that the sandbox or
	// the whole machine may end. They do not run.
	Unsafe []string
	// Owner is the user and group of the worktree and the private repository, for a provider that runs commands as their
	// owner; 0 means the user of the test.
	Owner int
}

// T is a test, or what stands for one on a user's machine.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Cleanup(f func())
	TempDir() string
	Context() context.Context
}

// test is a *testing.T: the program itself has no use for package testing.
type test[Self any] interface {
	T
	Parallel()
	Run(name string, f func(Self)) bool
}

// Run makes the attacks as subtests, which run in parallel. provider makes a new provider value; it is called several times.
func Run[P test[P]](t P, attacks []Attack, provider func(T) sandboxes.Provider, o Options) {
	t.Helper()
	for _, a := range attacks {
		if slices.Contains(o.Unsafe, a.Name) {
			continue
		}
		t.Run(a.Name, func(t P) {
			t.Parallel()
			s := o.suite(t, a, provider(t))
			a.Make(s)
			s.weakStill()
		})
	}
}

// suite begins an attack.
func (o Options) suite(t T, a Attack, provider sandboxes.Provider) *Suite {
	t.Helper()
	s := &Suite{
		T:        t,
		Provider: provider,
		Owner:    o.Owner,
		program:  o.Program,
		attacker: attacker,
		shared:   o.Shared,
		looking:  o.Looking,
		layered:  o.Layered,
	}
	if s.program == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s.program = self
	}
	if o.InPlace {
		s.attacker = s.program
	}
	for _, w := range o.Weak[a.Name] {
		s.weak = append(s.weak, &weakness{text: w})
	}
	return s
}

// Suite is one attack being made.
type Suite struct {
	T
	Provider sandboxes.Provider
	Owner    int // of the worktree; 0 means the user of this process

	program  string
	attacker string // where the program is inside
	shared   string // a folder of the host inside; empty: the worktree is
	looking  bool   // processes are limited by polling
	layered  bool   // worktrees are over a lower folder
	weak     []*weakness
	away     bool // see NotHere
}

// NotHere says that the attack cannot be made on this provider, such as one on a proxy where there is none.
func (s *Suite) NotHere() { s.away = true }

func (s *Suite) vm() bool { return s.Provider.Capabilities().Isolation == sandboxes.VM }

// Layers tries whether the provider can show a worktree over a lower folder; nil: the attack is made without.
func (s *Suite) Layers() func(ctx context.Context, dir string) error {
	if l, ok := sandboxes.As[sandboxes.Layerer](s.Provider); ok && s.layered {
		return l.Layers
	}
	return nil
}

// inPlace reports whether the provider shows a file only at its own path.
func (s *Suite) inPlace() bool { return s.attacker == s.program }

// limit ends a test that would hang, long after any event it waits for.
const limit = time.Minute

// attacker is where the program is shown inside, where the provider can choose.
const attacker = "/srv/attacker"

// Bounded is for a call that must come to an end.
func (s *Suite) Bounded() context.Context {
	ctx, cancel := context.WithTimeoutCause(s.Context(), limit, errors.New("no end"))
	s.Cleanup(cancel)
	return ctx
}

// Room is an open sandbox on a worktree, with everything that a run has.
type Room struct {
	sandboxes.Sandbox
	*Suite
	host string // a folder of the host with all of the spec's folders, and secrets beside them
	spec sandboxes.Spec
}

// Words between the attacker and the suite.
const (
	role      = "attack" // of the attacker's process
	breach    = "BREACH "
	attackEnd = "all attacks made"
)

// secret is in a file of the host that no sandbox may see.
const secret = "the-secret-of-the-host"

// open opens a sandbox; change may adapt its spec.
func (s *Suite) open(change func(*sandboxes.Spec)) *Room {
	s.Helper()
	host, err := filepath.EvalSymlinks(s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	r := &Room{Suite: s, host: host, spec: sandboxes.Spec{
		Run: "escape-" + rand.Text(), Worktree: filepath.Join(host, "worktree"), GitDir: filepath.Join(host, "private"),
		Objects: []string{filepath.Join(host, "objects")}, RequireIsolation: true,
	}}
	if runtime.GOOS == "linux" && !s.vm() {
		r.spec.Mounts = []sandboxes.Mount{{Host: s.program, Inside: s.attacker, ReadOnly: true}}
	}
	work := filepath.Join(r.spec.Worktree, "work")
	if s.layered {
		r.spec.Lower, r.spec.Setup = filepath.Join(host, "lower"), filepath.Join(host, "setup")
		r.spec.Worktree, work = filepath.Join(r.spec.Worktree, "files"), filepath.Join(r.spec.Lower, "work")
		for _, dir := range []string{r.spec.Lower, r.spec.Setup} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				s.Fatal(err)
			}
		}
		s.write(filepath.Join(r.spec.Setup, "made"), "made\n")
		s.Own(filepath.Join(r.spec.Setup, "made"))
		s.Cleanup(func() { _ = disk.RemoveAll(filepath.Join(host, "worktree")) })
		s.share(&r.spec)
	}
	objects, refs := filepath.Join(r.spec.GitDir, "objects"), filepath.Join(r.spec.GitDir, "refs")
	for _, dir := range []string{r.spec.Worktree, objects, refs, r.spec.Objects[0], filepath.Join(host, "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	s.write(filepath.Join(r.spec.GitDir, "HEAD"), "ref: refs/heads/main\n") // a provider may try git inside
	s.write(filepath.Join(r.spec.Worktree, ".git"), "gitdir: "+filepath.Join(host, "of-the-user")+"\n")
	s.write(work, "work\n")
	s.write(filepath.Join(r.spec.Objects[0], "object"), "object\n")
	s.write(filepath.Join(host, "secret"), secret)
	s.write(filepath.Join(host, "other", "secret"), secret)
	s.Own(r.spec.Worktree, r.spec.GitDir, objects, refs, filepath.Join(r.spec.GitDir, "HEAD"), filepath.Join(r.spec.Worktree, ".git"), work)
	if change != nil {
		change(&r.spec)
	}
	r.enter()
	return r
}

// share shows a folder of the host inside: a pipe in a worktree over a lower folder leads nowhere.
func (s *Suite) share(spec *sandboxes.Spec) {
	s.Helper()
	s.shared = s.TempDir()
	if err := os.Chmod(s.shared, 0o777); err != nil {
		s.Fatal(err)
	}
	spec.Mounts = append(spec.Mounts, sandboxes.Mount{Host: s.shared, Inside: s.shared})
}

// Enter opens a sandbox for a spec of the caller's.
func (s *Suite) Enter(spec sandboxes.Spec) *Room {
	s.Helper()
	r := &Room{Suite: s, spec: spec}
	r.enter()
	return r
}

func (r *Room) enter() {
	r.Helper()
	box, err := r.Provider.Open(r.Bounded(), r.spec)
	if err != nil {
		r.Fatalf("open the sandbox: %v", err)
	}
	r.Sandbox = box
	r.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(r.Context())); err != nil {
			r.Errorf("close the sandbox: %v", err)
		}
	})
}

// Own gives files to the user that commands run as.
func (s *Suite) Own(paths ...string) {
	s.Helper()
	for _, path := range paths {
		if s.Owner == 0 {
			return
		}
		if err := os.Chown(path, s.Owner, s.Owner); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *Suite) write(path, text string) {
	s.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}

// attackArgv starts the program as the attacker.
func (s *Suite) attackArgv(name string, args ...string) []string {
	return append([]string{s.attacker}, reexec.Args(role, append([]string{name}, args...)...)...)
}

// attack lets the test program attack from inside. The program reports every attack that succeeded.
func (r *Room) attack(name string, args ...string) {
	r.Helper()
	var out bytes.Buffer
	exit, err := r.Exec(r.Bounded(), sandboxes.Command{
		Argv: r.attackArgv(name, args...), Env: []string{"GORACE=" + os.Getenv("GORACE")}, Stdout: &out, Stderr: &out,
	})
	if err != nil || !exit.OK() {
		r.Errorf("%s: %+v, %v\n%s", name, exit, err, &out)
	}
	if !strings.Contains(out.String(), attackEnd) {
		r.Errorf("%s did not come to its end:\n%s", name, &out)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, breach) {
			r.Errorf("%s: %s", name, strings.TrimSpace(strings.TrimPrefix(line, breach)))
		}
	}
}

// Sh runs a script inside.
func (r *Room) Sh(script string, args ...string) (string, sandboxes.Exit, error) {
	r.Helper()
	var out bytes.Buffer
	exit, err := r.Exec(r.Bounded(), sandboxes.Command{
		Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &out,
	})
	return out.String(), exit, err
}

// Works fails the test unless the sandbox still works.
func (r *Room) Works() {
	r.Helper()
	if out, exit, err := r.Sh("cat work"); err != nil || !exit.OK() || out != "work\n" {
		r.Errorf("the sandbox no longer works: %+v, %v, %s", exit, err, out)
	}
}

// lowerFiles are the files below a layered worktree: of the shared checkout, and of what setup has made.
func (r *Room) lowerFiles() []string {
	if r.spec.Lower == "" {
		return nil
	}
	return []string{filepath.Join(r.spec.Lower, "work"), filepath.Join(r.spec.Setup, "made")}
}

// unchanged fails the test if the host's files have changed.
func (r *Room) unchanged() {
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
	folders := 5
	for _, file := range r.lowerFiles() {
		folders++
		dir, name := filepath.Split(file)
		text, err := os.ReadFile(file)
		if entries, failed := os.ReadDir(dir); errors.Join(err, failed) != nil || string(text) != name+"\n" || len(entries) != 1 {
			r.Errorf("%s holds %v, %s is now %q, %v %v", dir, entries, name, text, err, failed)
		}
	}
	if entries, err = os.ReadDir(r.host); err != nil || len(entries) != folders {
		r.Errorf("the host's folder holds %v, %v", entries, err)
	}
}
