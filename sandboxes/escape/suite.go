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

// Options describes the differences between providers.
type Options struct {
	// Program is a host path of the test program that the provider can show; empty means the running executable.
	Program string
	// InPlace means that the provider shows a file only at its own path.
	InPlace bool
	// PollsProcesses means that the provider limits processes by polling. The suite then ends a fork bomb early, because nothing
	// else protects the machine that runs the test.
	PollsProcesses bool
	// Shared is a host folder that is shown inside at the same path; empty means that the worktree is.
	Shared string
	// Layered shows the worktree over a lower folder, if the provider supports it.
	Layered bool
	// Weak lists the attacks that, according to its documentation, the provider does not prevent: parts of the suite's
	// reports by attack name. The test fails if a listed attack is prevented.
	Weak map[string][]string
	// Unsafe lists the attacks that, according to its documentation, the provider does not prevent at all, so that the
	// sandbox or the whole machine may crash. They are skipped.
	Unsafe []string
	// Owner is the user and group of the worktree and the private repository, for a provider that runs commands as their
	// owner; 0 means the user of the test.
	Owner int
}

// T is a *testing.T, or its replacement on a user's machine.
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

// test is satisfied by *testing.T, so that the program itself does not import package testing.
type test[Self any] interface {
	T
	Parallel()
	Run(name string, f func(Self)) bool
}

// Run runs the attacks as parallel subtests. provider returns a new provider value for each call.
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
			s.checkWeaknesses()
		})
	}
}

// suite prepares an attack.
func (o Options) suite(t T, a Attack, provider sandboxes.Provider) *Suite {
	t.Helper()
	s := &Suite{
		T:            t,
		Provider:     provider,
		Owner:        o.Owner,
		program:      o.Program,
		attacker:     attacker,
		shared:       o.Shared,
		polledLimits: o.PollsProcesses,
		layered:      o.Layered,
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
		s.weaknesses = append(s.weaknesses, &weakness{text: w})
	}
	return s
}

// Suite is one attack in progress.
type Suite struct {
	T
	Provider sandboxes.Provider
	Owner    int // owner of the worktree; 0 means the user of this process

	program      string
	attacker     string // path of the program inside
	shared       string // host folder that is shown inside; empty: the worktree is
	polledLimits bool   // processes are limited by polling
	layered      bool   // worktrees are over a lower folder
	weaknesses   []*weakness
	notHere      bool // set by NotHere
}

// NotHere marks the attack as not applicable to this provider, for example one on a proxy that the provider does not use.
func (s *Suite) NotHere() { s.notHere = true }

func (s *Suite) vm() bool { return s.Provider.Capabilities().Isolation == sandboxes.VM }

// Layers returns the provider's test for layers; nil if the attack runs without them.
func (s *Suite) Layers() func(ctx context.Context, dir string) error {
	if l, ok := sandboxes.As[sandboxes.Layerer](s.Provider); ok && s.layered {
		return l.Layers
	}
	return nil
}

// inPlace reports whether the provider shows a file only at its own path.
func (s *Suite) inPlace() bool { return s.attacker == s.program }

// limit ends a hanging test. It is much longer than any expected event.
const limit = time.Minute

// attacker is the path of the program inside, if the provider can choose it.
const attacker = "/srv/attacker"

// Bounded returns a context that bounds a call.
func (s *Suite) Bounded() context.Context {
	ctx, cancel := context.WithTimeoutCause(s.Context(), limit, errors.New("no end"))
	s.Cleanup(cancel)
	return ctx
}

// Room is an open sandbox on a worktree, with everything that a run has.
type Room struct {
	sandboxes.Sandbox
	*Suite
	host string // host folder with the spec's folders and, beside them, secrets
	spec sandboxes.Spec
}

// Protocol between the attacker and the suite.
const (
	role      = "attack" // of the attacker's process
	breach    = "BREACH "
	attackEnd = "all attacks made"
)

// secret is the content of a host file that no sandbox may read.
const secret = "the-secret-of-the-host"

// open opens a sandbox; change may modify its spec.
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
	s.write(filepath.Join(r.spec.GitDir, "HEAD"), "ref: refs/heads/main\n") // a provider may run git inside
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

// share mounts a host folder: a named pipe in an overlay does not connect to the host.
func (s *Suite) share(spec *sandboxes.Spec) {
	s.Helper()
	s.shared = s.TempDir()
	if err := os.Chmod(s.shared, 0o777); err != nil {
		s.Fatal(err)
	}
	spec.Mounts = append(spec.Mounts, sandboxes.Mount{Host: s.shared, Inside: s.shared})
}

// Enter opens a sandbox for the caller's spec.
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

// Own changes the owner of files to the user that commands run as.
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

// attackArgv returns the command line of the attacker.
func (s *Suite) attackArgv(name string, args ...string) []string {
	return append([]string{s.attacker}, reexec.Args(role, append([]string{name}, args...)...)...)
}

// attack runs an attack by the program inside, which reports every success.
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

// Works reports an error unless the sandbox still works.
func (r *Room) Works() {
	r.Helper()
	if out, exit, err := r.Sh("cat work"); err != nil || !exit.OK() || out != "work\n" {
		r.Errorf("the sandbox no longer works: %+v, %v, %s", exit, err, out)
	}
}

// lowerFiles returns the files below a layered worktree: of the shared checkout, and of the folder of setup.
func (r *Room) lowerFiles() []string {
	if r.spec.Lower == "" {
		return nil
	}
	return []string{filepath.Join(r.spec.Lower, "work"), filepath.Join(r.spec.Setup, "made")}
}

// checkUnchanged reports an error if the host's files have changed.
func (r *Room) checkUnchanged() {
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
