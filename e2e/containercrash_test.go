package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// twoRounds is an agent that waits until its ralph is killed, and finds its commit when it is started again. It needs no
// program of the tests, which a container cannot see.
const twoRounds = `RALPH_AGENT_COMMAND=sh -c 'if ! test -f one.txt; then echo 1 >one.txt && git add one.txt && git commit -qm One && echo 2 >two.txt && ` +
	`echo up >/tmp/up && exec sleep 1000; fi; git add -A && git commit -qm Two --allow-empty && echo "<promise>COMPLETE</promise>"'`

// ralph is killed while a container with copied files is created, or while an agent works in it. The next sweep loses no
// commit and leaves nothing behind: no container, volume, process, socket or folder.
func TestKilledWithACopiedContainer(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		for _, when := range []string{"opening", "working"} {
			if !tested(engine == "docker", when == "working") {
				continue
			}
			t.Run(engine+" "+when, func(t *testing.T) {
				t.Parallel()
				containertest.Require(t, engine)
				temp := privateTemp(t)
				s, r := newScene(t, doIt), newRepository(t)
				keys := r.backlog(t, 1)
				e := engineOf{T: t, name: engine}
				env := engineEnv("TMPDIR="+temp, twoRounds)
				work := []string{
					"work", "--sandbox", engine, "--image", os.Getenv("RALPH_TEST_IMAGE"), "--container-files", "copy", "--max-iterations", "3",
				}
				if os.Getuid() == 0 { // root owns the worktree, so root must work in it
					work = append(work, "--container-user", "0:0")
				}
				p := s.start(t, r, env, work...)
				state := s.path("state/ralph/*/containers/ralph-*")
				var name string // prefix of the names of everything that belongs to the container
				await(t, "a container's folder", func() bool {
					found, err := filepath.Glob(state)
					if err != nil || len(found) == 0 {
						return false
					}
					name = filepath.Base(found[0])
					return true
				})
				prefix := name[:strings.LastIndexByte(name, '-')+1]
				await(t, "the container to be "+when, func() bool {
					if when == "opening" {
						return len(e.volumes(prefix)) > 1
					}
					return exec.Command(engine, "exec", name, "test", "-f", "/tmp/up").Run() == nil
				})
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				p.end(t)
				if len(e.volumes(prefix)) == 0 {
					t.Fatal("the killed ralph left nothing: there is nothing to clean up")
				}
				if when == "opening" { // the next agent must not wait
					env = append(env, strings.Replace(twoRounds, "exec sleep 1000", "true", 1))
				}
				next := s.start(t, r, env, work...)
				if got := next.end(t); got != 0 {
					t.Errorf("the next sweep ends with status %d\n%s", got, &next.out)
				}
				if got := strings.Join(r.lines(t, "log", "--reverse", "--format=%s", "main..ralph/"+keys[0]), ","); when == "working" && got != "One,Two" {
					t.Errorf("commits %q, want One and Two", got)
				}
				if left := slices.Concat(e.containers(prefix), e.volumes(prefix)); len(left) > 0 {
					t.Errorf("%q are left", left)
				}
				if left, _ := filepath.Glob(state); len(left) > 0 {
					t.Errorf("%q are left", left)
				}
				if left := leftIn(t, temp); len(left) > 0 {
					t.Errorf("%q are left", left)
				}
				s.clean(t, r)
			})
		}
	}
}

// engineOf inspects an engine.
type engineOf struct {
	*testing.T
	name string
}

func (e engineOf) containers(prefix string) []string {
	return e.named(prefix, "ps", "--all", "--filter", "label=ralph.run", "--format", "{{.Names}}")
}

func (e engineOf) volumes(prefix string) []string {
	return e.named(prefix, "volume", "ls", "--quiet")
}

func (e engineOf) named(prefix string, args ...string) []string {
	e.Helper()
	out, err := exec.Command(e.name, args...).Output()
	if err != nil {
		e.Fatalf("%s %q: %v", e.name, args, err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// ralph is killed while an agent works in a container. Clean names and removes the container, and leaves the work to the next sweep.
func TestCleanRemovesTheContainerOfAKilledRun(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		if !tested(engine == "docker", true) {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			containertest.Require(t, engine)
			s, r := newScene(t, doIt), newRepository(t)
			key := r.backlog(t, 1)[0]
			e := engineOf{T: t, name: engine}
			work := []string{"work", "--sandbox", engine, "--image", os.Getenv("RALPH_TEST_IMAGE"), "--container-keep"}
			if os.Getuid() == 0 { // root owns the worktree, so root must work in it
				work = append(work, "--container-user", "0:0")
			}
			p := s.start(t, r, engineEnv(twoRounds), work...)
			var name string
			await(t, "the agent to be at work", func() bool {
				found, _ := filepath.Glob(s.path("state/ralph/*/containers/ralph-*"))
				return slices.ContainsFunc(found, func(folder string) bool {
					name = filepath.Base(folder)
					return exec.Command(engine, "exec", name, "test", "-f", "/tmp/up").Run() == nil
				})
			})
			clean := func(args ...string) string {
				t.Helper()
				p := s.start(t, r, engineEnv(), append([]string{"clean"}, args...)...)
				if got := p.end(t); got != 0 {
					t.Errorf("status %d\n%s", got, &p.out)
				}
				return p.out.String()
			}
			if said := clean(); strings.Contains(said, name) || len(e.containers(name)) == 0 {
				t.Fatalf("the container of a living run:\n%s", said)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.end(t)
			for _, args := range [][]string{{"--dry-run"}, nil} {
				if len(e.containers(name)) == 0 {
					t.Fatal("it is gone already")
				}
				if said := clean(args...); !strings.Contains(said, name) || !strings.Contains(said, key) {
					t.Errorf("clean %q does not name %s:\n%s", args, name, said)
				}
			}
			if left := e.containers(name); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
			if said := clean(); strings.Contains(said, name) {
				t.Errorf("named once more:\n%s", said)
			}
			if next := s.start(t, r, engineEnv(twoRounds), work...); next.end(t) != 0 {
				t.Errorf("the next sweep:\n%s", &next.out)
			}
			if got := strings.Join(r.lines(t, "log", "--reverse", "--format=%s", "main..ralph/"+key), ","); got != "One,Two" {
				t.Errorf("commits %q, want One and Two", got)
			}
			if said := clean(); len(e.containers(name[:strings.LastIndexByte(name, '-')])) > 0 {
				t.Errorf("kept containers are left:\n%s", said)
			}
			s.clean(t, r)
		})
	}
}
