package e2e

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// enginePath is a proxy for the engine's socket. While it is shut, clients see a stopped engine.
type enginePath struct {
	path, to string

	mu    sync.Mutex
	at    net.Listener           // guarded by mu; nil: shut
	conns map[io.Closer]struct{} // guarded by mu
}

func newEnginePath(t *testing.T, folder string) *enginePath {
	t.Helper()
	to, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok {
		t.Skip("DOCKER_HOST names no socket")
	}
	p := &enginePath{path: filepath.Join(folder, "d.sock"), to: to, conns: map[io.Closer]struct{}{}}
	p.open(t)
	t.Cleanup(p.shut)
	return p
}

func (p *enginePath) open(t *testing.T) {
	t.Helper()
	at, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.at = at
	p.mu.Unlock()
	go func() {
		for {
			from, err := at.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", p.to)
			if err != nil {
				_ = from.Close()
				continue
			}
			p.mu.Lock()
			gone := p.at != at
			p.conns[from], p.conns[to] = struct{}{}, struct{}{}
			p.mu.Unlock()
			if gone {
				p.drop()
			}
			go pass(to.(*net.UnixConn), from.(*net.UnixConn))
			go pass(from.(*net.UnixConn), to.(*net.UnixConn))
		}
	}()
}

func pass(to, from *net.UnixConn) {
	_, _ = io.Copy(to, from) // only its end matters
	_ = to.CloseWrite()
}

func (p *enginePath) shut() {
	p.mu.Lock()
	at := p.at
	p.at = nil
	p.mu.Unlock()
	if at != nil {
		_ = at.Close()
	}
	p.drop()
}

func (p *enginePath) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

// When an engine stops while an agent works, no work is lost: the files stay in place, and the next sweep continues with the
// commit and the uncommitted changes.
func TestEngineStopsDuringARun(t *testing.T) {
	t.Parallel()
	for _, files := range []string{"bind", "copy"} {
		t.Run(files, func(t *testing.T) {
			t.Parallel()
			containertest.Require(t, "docker")
			short, err := os.MkdirTemp("", "engine") //nolint:usetesting // the path of a socket is short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(short) })
			engine := newEnginePath(t, short)
			s, r := newScene(t, doIt), newRepository(t)
			keys := r.backlog(t, 1)
			env := append(engineEnv(twoRounds), "DOCKER_HOST=unix://"+engine.path)
			work := s.containerWork(files)
			p := s.start(t, r, env, work...)
			await(t, "the agent to have committed", func() bool { return s.containerHas("docker", "/tmp/up") })
			engine.shut()
			if got := p.end(t); got == 0 {
				t.Errorf("the sweep ends with status %d\n%s", got, &p.out)
			}
			if kept, _ := filepath.Glob(s.path("state/ralph/*/kept/*")); len(kept) > 0 {
				t.Errorf("set aside: %q", kept)
			}
			engine.open(t)
			p = s.start(t, r, env, work...)
			if got := p.end(t); got != 0 {
				t.Errorf("the next sweep ends with status %d\n%s", got, &p.out)
			}
			if said := p.out.String(); !strings.Contains(said, keys[0]+"  environment-unavailable  1 commit") {
				t.Errorf("the run that the engine cut short is no outage:\n%s", said)
			}
			if got := strings.Join(r.lines(t, "log", "--reverse", "--format=%s", "main..ralph/"+keys[0]), ","); got != "One,Two" {
				t.Errorf("commits %q, want One and Two", got)
			}
			if got := r.lines(t, "ls-tree", "--name-only", "refs/ralph/wip/"+keys[0], "two.txt"); len(got) != 1 {
				t.Error("what was not committed is lost")
			}
			noContainer(t, "docker", s.dir)
			s.clean(t, r)
		})
	}
}

// When somebody removes the container, the run ends at once with that reason, and its work is imported.
func TestContainerRemovedDuringARun(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		for _, files := range []string{"bind", "copy"} {
			if !tested(engine == "docker", files == "copy") {
				continue
			}
			t.Run(engine+" "+files, func(t *testing.T) {
				t.Parallel()
				containertest.Require(t, engine)
				s, r := newScene(t, doIt), newRepository(t)
				keys := r.backlog(t, 1)
				p := s.start(t, r, engineEnv(twoRounds), append(s.containerWork(files), "--sandbox", engine)...)
				await(t, "the agent to have committed", func() bool { return s.containerHas(engine, "/tmp/up") })
				if out, err := exec.Command(engine, "rm", "--force", s.container()).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if got := p.end(t); got == 0 {
					t.Errorf("the sweep ends with status %d", got)
				}
				if !strings.Contains(p.out.String(), "container was removed") {
					t.Errorf("no clear reason:\n%s", &p.out)
				}
				if got := strings.Join(r.lines(t, "log", "--format=%s", "main..ralph/"+keys[0]), ","); got != "One" {
					t.Errorf("commits %q, want One", got)
				}
				noContainer(t, engine, s.dir)
			})
		}
	}
}

// If a container cannot start processes any more when the work is imported, another one replaces it over the same files.
func TestNoProcessesForTheImport(t *testing.T) {
	t.Parallel()
	containertest.Require(t, "docker")
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 1)
	const agent = `RALPH_AGENT_COMMAND=sh -c 'echo 1 >one.txt && git add one.txt && git commit -qm One && echo up >/tmp/up; ` +
		`until test -f go.txt; do :; done; echo "<promise>COMPLETE</promise>"'`
	p := s.start(t, r, engineEnv(agent), s.containerWork("bind")...)
	await(t, "the agent to have committed", func() bool { return s.containerHas("docker", "/tmp/up") })
	if out, err := exec.Command("docker", "update", "--pids-limit", "1", s.container()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(s.path("state/ralph/*/worktrees/*/files"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(files[0], "go.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != 0 {
		t.Errorf("the sweep ends with status %d", got)
	}
	if got := strings.Join(r.lines(t, "log", "--format=%s", "main..ralph/"+keys[0]), ","); got != "One" {
		t.Errorf("commits %q, want One\n%s", got, &p.out)
	}
	if kept, _ := filepath.Glob(s.path("state/ralph/*/kept/*")); len(kept) > 0 {
		t.Errorf("set aside: %q", kept)
	}
	noContainer(t, "docker", s.dir)
	s.clean(t, r)
}

// containerWork returns the arguments of a sweep in containers whose files are mounted or copied.
func (s scene) containerWork(files string) []string {
	work := []string{
		"work", "--sandbox", "docker", "--image", os.Getenv("RALPH_TEST_IMAGE"), "--container-files", files, "--max-iterations", "3", "--retry-backoff", "0s",
	}
	if os.Getuid() == 0 { // root owns the worktree, so root must work in it
		work = append(work, "--container-user", "0:0")
	}
	return work
}

// container returns the name of the scene's container, or "" if there is none yet.
func (s scene) container() string {
	found, _ := filepath.Glob(s.path("state/ralph/*/containers/ralph-*"))
	if len(found) == 0 {
		return ""
	}
	return filepath.Base(found[0])
}

func (s scene) containerHas(engine, file string) bool {
	return exec.Command(engine, "exec", s.container(), "test", "-f", file).Run() == nil
}
