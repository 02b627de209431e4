package container_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// real runs a test on the engines that share the host's kernel and files, and on others.
func real(t *testing.T, test func(t *testing.T, name string, r rig), more ...string) {
	t.Parallel()
	names := append([]string{"docker", "podman", "docker" + copySuffix}, more...)
	if everything() {
		names = append(names, "podman"+copySuffix)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			if name == "podman-rootless" && os.Getuid() == 0 {
				asUser(t, os.Getenv(rootlessVar))
				return
			}
			test(t, name, rigs()[name])
		})
	}
}

// enter opens a sandbox that is closed when the test ends.
func enter(t *testing.T, p sandboxes.Provider, spec sandboxes.Spec) sandboxes.Sandbox {
	t.Helper()
	if spec.Run == "" {
		spec.Run = "hardened-" + strings.ReplaceAll(t.Name(), "/", "-") + "-" + filepath.Base(spec.Worktree)
	}
	box, err := p.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box
}

// inside returns a script's output, both streams in order, and its exit status.
func inside(t *testing.T, box sandboxes.Sandbox, script string) (string, sandboxes.Exit) {
	t.Helper()
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "exec 2>&1\n" + script}, Stdout: &out})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), exit
}

// The guarantees for every container, seen from inside.
func TestHardened(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		dir := folder(t)
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: dir, Run: "hard-" + name + filepath.Base(filepath.Dir(dir)), Env: []string{"SPEC_SECRET=placeholder-1"},
			Limits: sandboxes.Limits{Memory: 256 << 20, PIDs: 64, Disk: 8 << 20, CPUs: 1},
		})
		for script, want := range map[string]string{
			"id -u; id -g": "1000\n1000",
			"grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | cut -f2 | sort -u":                  "0000000000000000",
			"grep NoNewPrivs /proc/self/status | cut -f2":                                           "1",
			"grep Seccomp: /proc/self/status | cut -f2":                                             "2",
			"touch /x /etc/x /usr/x 2>&1 | grep -c Read-only":                                       "3",
			"touch ~/x /tmp/x && echo yes; ls -A ~":                                                 "yes\nx",
			"echo $HOME":                                                                            "/home/agent",
			"ls /sys/class/net":                                                                     "lo",
			"cat /proc/1/environ 2>&1 | grep -c denied":                                             "1",
			"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c 'placeholde[r]'":                   "0",
			"for i in 1 2; do head -c 6000000 /dev/zero >/tmp/big$i || echo full; done 2>/dev/null": "full\nfull",
			"test -w /.ralph/ralph || echo no":                                                      "no",
			"ulimit -c":                                                                             "0",
		} {
			if got, _ := inside(t, box, script); got != want {
				t.Errorf("%s\nprints %q, want %q", script, got, want)
			}
		}
		if got := engineSays(t, r.engine.Name, "inspect", engineSays(t, r.engine.Name, "ps", "-q", "--filter", "label=ralph.run=hard-"+name+filepath.Base(filepath.Dir(dir)))); strings.Contains(got, "placeholder") {
			t.Error("inspect shows the commands' environment")
		}
		if r.unbounded {
			return // this engine cannot enforce limits; ralph then opens a sandbox only if the user accepts that
		}
		// More processes and more memory than allowed: the command fails, but the sandbox continues to work.
		if out, _ := inside(t, box, "i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; echo all started"); strings.Contains(out, "all started") {
			t.Errorf("a hundred processes started: %s", out)
		}
		if _, exit := inside(t, box, "exec tail -c 1000000000 /dev/zero"); exit.Signal != "SIGKILL" {
			t.Errorf("a memory bomb ended with %+v", exit)
		}
		if out, _ := inside(t, box, "echo alive"); out != "alive" {
			t.Errorf("the sandbox says %q", out)
		}
	}, "podman-rootless")
}

// owner is the user of commands.
const owner = 1000

// Inside, the worktree's .git file points to the private repository and cannot be changed; borrowed objects are read-only.
// The paths contain characters that are special in mount arguments.
func TestGitBoundary(t *testing.T) {
	real(t, func(t *testing.T, _ string, r rig) {
		if r.copies {
			t.Skip("TestGitBoundaryOfCopies is about it") // it runs wherever this test does
		}
		base := filepath.Join(folder(t), `odd, "name":x=y ü`)
		for _, d := range []string{"", "tree", "private.git", "objects"} {
			if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
				t.Fatal(err)
			}
			if os.Getuid() != 0 {
				continue // the folder belongs to this user already
			}
			if err := os.Chown(filepath.Join(base, d), owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		tree, objects := filepath.Join(base, "tree"), filepath.Join(base, "objects")
		if err := os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: /host/only\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		private := filepath.Join(base, "private.git")
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: tree, GitDir: private, Objects: []string{objects}, Run: "git-" + r.engine.Name + filepath.Base(filepath.Dir(base)),
		})
		if got, _ := inside(t, box, "cat .git"); got != "gitdir: "+private {
			t.Errorf(".git inside is %q", got)
		}
		for _, attack := range []string{"rm -f .git", "mv .git x", "echo gitdir: .evil >.git", "ln -sf x .git", "touch ../objects/x"} {
			if _, exit := inside(t, box, attack); exit.OK() && attack != "ln -sf x .git" {
				t.Errorf("%s succeeds", attack)
			}
		}
		script := "set -e; git init -q --separate-git-dir x tmp 2>/dev/null || true; rm -rf tmp x; " +
			"git init -q --bare ../private.git && git --git-dir=../private.git config core.bare false; echo hi >f; git add f; " +
			"git -c user.name=a -c user.email=a@example.invalid commit -qm one; git log --oneline --format=%s"
		if got, _ := inside(t, box, script); got != "one" {
			t.Errorf("a commit inside: %q", got)
		}
		if text, err := os.ReadFile(filepath.Join(tree, ".git")); err != nil || string(text) != "gitdir: /host/only\n" {
			t.Errorf("the host's .git is %q, %v", text, err)
		}
	}, "podman-rootless")
}

// A command that kills its helper ends its own sandbox, and no other.
func TestKillingTheHelper(t *testing.T) {
	real(t, func(t *testing.T, _ string, r rig) {
		p := r.provider(r.config(t))
		other := enter(t, p, sandboxes.Spec{Worktree: folder(t)})
		box := enter(t, p, sandboxes.Spec{Worktree: folder(t)})
		_, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "kill -9 $PPID; sleep 100"}})
		if err == nil || !strings.Contains(err.Error(), "sandbox") {
			t.Errorf("Exec gives %v, want an error about the sandbox", err)
		}
		if _, again := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"true"}}); again == nil {
			t.Error("the sandbox works on after its helper was killed")
		}
		if out, _ := inside(t, other, "echo alive"); out != "alive" {
			t.Errorf("the other sandbox says %q", out)
		}
	}, "podman-rootless")
}

// A failing input is not mistaken for a complete one.
func TestInputThatFails(t *testing.T) {
	real(t, func(t *testing.T, _ string, r rig) {
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{Worktree: folder(t)})
		broken := errors.New("disk gone")
		_, err := box.Exec(t.Context(), sandboxes.Command{
			Argv: []string{"cat"}, Stdin: io.MultiReader(strings.NewReader("half"), failing{broken}),
		})
		if !errors.Is(err, broken) {
			t.Errorf("Exec gives %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Unsuitable images are refused with a fix.
func TestImagesThatCannotWork(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		for image, want := range map[string]string{
			"ralph-test:absent": "open sandbox NAME: NAME has no image ralph-test:absent [{image NAME}]",
			"ralph-test:no-git": "open sandbox NAME: image ralph-test:no-git has no git; add it to the image's file and build it again [{image NAME}]",
			"ralph-test:other-user": "open sandbox NAME: image ralph-test:other-user was built for uid 4321, and you are uid 1000 " +
				"[{image NAME} {user 1000:1000}]",
		} {
			c := r.config(t)
			c.Image = image
			run := "image-" + name + "-" + strings.ReplaceAll(image, ":", "-")
			_, err := r.provider(c).Open(t.Context(), sandboxes.Spec{Run: run, Worktree: folder(t)})
			if want = strings.ReplaceAll(want, "NAME", r.engine.Name); withFixes(err) != want {
				t.Errorf("error is %v, want %s", err, want)
			}
			if got := containers(t, r.engine.Name, run); got != "" {
				t.Errorf("left behind: %s", got)
			}
		}
	})
}

// A kept container is stopped and stays.
func TestKeep(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		c := r.config(t)
		c.Keep = true
		dir := folder(t)
		spec := sandboxes.Spec{Worktree: dir, Run: "keep-" + name + filepath.Base(filepath.Dir(dir))}
		box, err := r.provider(c).Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := containers(t, r.engine.Name, spec.Run)
		if left == "" {
			t.Fatal("nothing is kept")
		}
		if got := engineSays(t, r.engine.Name, "ps", "--quiet", "--filter", "name="+left); got != "" {
			t.Errorf("it still runs: %s", got)
		}
		c.Keep = false
		if err := reaper(t, r.provider(c)).Reap(t.Context(), spec.Run); err != nil {
			t.Fatal(err)
		}
		if got := containers(t, r.engine.Name, spec.Run); got != "" {
			t.Errorf("still there: %s", got)
		}
	})
}

// Nobody listens on this egress socket, so Open fails with the helper's message.
func TestEgressThatDoesNotAnswer(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		dir, err := os.MkdirTemp("", "egress") //nolint:usetesting // a socket's path has to be short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
		wt := folder(t)
		_, err = r.provider(r.config(t)).Open(t.Context(), sandboxes.Spec{
			Worktree: wt, Egress: filepath.Join(dir, "s"), Run: "egress-" + name + filepath.Base(filepath.Dir(wt)),
		})
		want := "its container has ended: ralph inside a container: "
		if r.copies {
			want = "the tunnel to the egress proxy has ended: ralph inside a container: "
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open gives %v", err)
		}
	})
}

// When memory runs out, the kernel kills the command, and not the helper that reports its end.
func TestCommandsGoFirst(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		dir := folder(t)
		box, err := r.provider(r.config(t)).Open(t.Context(), sandboxes.Spec{
			Worktree: dir, Run: "score-" + name + filepath.Base(filepath.Dir(dir)),
		})
		if err != nil {
			t.Fatal(err)
		}
		var score strings.Builder
		exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"cat", "/proc/self/oom_score_adj"}, Stdout: &score})
		if err := errors.Join(err, box.Close(t.Context())); err != nil || !exit.OK() || score.String() != "500\n" {
			t.Errorf("%+v, %v: the score is %q", exit, err, &score)
		}
	})
}

// A process that was killed at the memory limit is in the notices, although its command continues.
func TestMemoryNotice(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		if r.unbounded || r.runtime == "runsc" {
			return // the limit ends the whole sandbox, or is not enforced
		}
		dir := folder(t)
		box, err := r.provider(r.config(t)).Open(t.Context(), sandboxes.Spec{
			Worktree: dir, Run: "memory-" + name + filepath.Base(filepath.Dir(dir)), Limits: sandboxes.Limits{Memory: 64 << 20},
		})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c",
			`(x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}) || echo went on`}})
		if err != nil || !exit.OK() {
			t.Errorf("%+v, %v", exit, err)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := sandboxes.NoticesOf(box); !sandboxtest.Killed(got, 64<<20) {
			t.Errorf("notices %q", got)
		}
	})
}
