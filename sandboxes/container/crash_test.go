package container_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// crash describes what a ralph process does until it is killed.
type crash struct {
	Rig    string
	Config container.Config
	Spec   sandboxes.Spec
	Script string
	// Fill, instead of Script, runs while the disk of the Spec is filled.
	Fill    string
	Folders map[string]string
}

// untilKilled is that process. Its standard output is the output of the script.
func untilKilled() int {
	var what crash
	err := json.Unmarshal([]byte(os.Getenv(crashVar)), &what)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	if what.Fill != "" {
		what.Spec.Disk = &sandboxes.Disk{Folders: what.Folders, Fill: func(ctx context.Context, s sandboxes.Sandbox) error {
			_, err := s.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", what.Fill}, Stdout: os.Stdout})
			return err
		}}
	}
	box, err := rigs()[what.Rig].provider(what.Config).Open(ctx, what.Spec)
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", what.Script}, Stdout: os.Stdout})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// happen returns after the script has printed "ready" and its ralph process was killed.
func (c crash) happen(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	active, saying := io.Pipe()
	said := proc.NewTail(1 << 10)
	ended := make(chan error, 1)
	go func() {
		// This kills only the program's process group: its children are in other groups.
		_, err := proc.Run(ctx, proc.Spec{
			Argv: []string{self}, Dir: "/", Stdout: saying, Stderr: said, Env: append(os.Environ(), crashVar+"="+string(text)),
		})
		_ = saying.Close()
		ended <- err
	}()
	line, err := bufio.NewReader(active).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the ralph to be killed says %q, %v: %v, %s", line, err, <-ended, said)
	}
	kill(errors.New("crash"))
	if err := <-ended; err == nil {
		t.Error("the ralph to be killed ended by itself")
	}
}

// A killed ralph leaves its container. Reap removes the container and its state folder.
func TestReapAfterACrash(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "podman", "runsc", "runsc" + copySuffix, "podman-rootless"} {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			if name == "podman-rootless" && os.Getuid() == 0 {
				asUser(t, os.Getenv(rootlessVar))
				return
			}
			r := rigs()[name]
			c := r.config(t)
			dir, run := folder(t), fmt.Sprintf("crash-%s-%d", name, os.Getpid())
			spec := sandboxes.Spec{Run: run, Worktree: dir}
			if !r.copies {
				spec.Home = folder(t)
				if err := os.WriteFile(filepath.Join(spec.Home, "layer"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			crash{Rig: name, Config: c, Spec: spec, Script: "mv ~/layer ~/made; echo ready; exec sleep 100"}.happen(t)

			p := reaper(t, r.provider(c))
			if got := containers(t, r.engine.Name, run); got == "" {
				t.Fatal("the crash left no container")
			}
			if err := p.Reap(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			if got := containers(t, r.engine.Name, run); got != "" {
				t.Errorf("left after Reap: %s", got)
			}
			if files, err := os.ReadDir(c.StateDir); err != nil || len(files) > 0 {
				t.Errorf("files left after Reap: %v, %v", files, err)
			}
			if files, err := os.ReadDir(spec.Home); !r.copies && (err != nil || len(files) != 1 || files[0].Name() != "layer") {
				t.Errorf("the layer of the home: %v, %v", files, err)
			}
		})
	}
}

// Abandoned finds the containers of a killed ralph without knowing the run, and they can be removed. It does not find those
// of a living ralph, or of another state folder.
func TestAbandoned(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		c := r.config(t)
		c.Keep = true
		dir := folder(t)
		run := "left-" + name + filepath.Base(filepath.Dir(dir))
		spec := sandboxes.Spec{Run: run + " dead", Worktree: dir}
		crash{Rig: name, Config: c, Spec: spec, Script: "echo ready; exec sleep 1000"}.happen(t)
		for _, other := range []sandboxes.Spec{{Run: run + " alive", Worktree: dir}, {Run: run + " ended", Worktree: dir}} {
			box, err := r.provider(c).Open(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				d := c
				d.Keep = false
				if err := reaper(t, r.provider(d)).Reap(context.WithoutCancel(t.Context()), other.Run); err != nil {
					t.Error(err)
				}
			})
			if strings.HasSuffix(other.Run, "ended") {
				if err := box.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		abandoned := func(c container.Config) map[string]string {
			t.Helper()
			p, ok := sandboxes.As[*container.Provider](r.provider(c))
			if !ok {
				t.Fatal("it is no container.Provider")
			}
			found, err := p.Abandoned(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		left := containers(t, r.engine.Name, spec.Run)
		if diff := cmp.Diff(map[string]string{left: spec.Run}, abandoned(c)); diff != "" {
			t.Error(diff)
		}
		other := c
		other.StateDir += "-other"
		if found := abandoned(other); len(found) > 0 {
			t.Errorf("another state folder has %q", found)
		}
		p, _ := sandboxes.As[*container.Provider](r.provider(c))
		if err := p.Discard(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		if found := abandoned(c); len(found) > 0 {
			t.Errorf("left are %q", found)
		}
		if containers(t, r.engine.Name, run+" alive") == "" || containers(t, r.engine.Name, run+" ended") == "" {
			t.Error("a container of a living ralph is gone")
		}
	})
}

// reaper returns the Reaper of a provider that may be decorated.
func reaper(t *testing.T, p sandboxes.Provider) sandboxes.Reaper {
	t.Helper()
	r, ok := sandboxes.As[sandboxes.Reaper](p)
	if !ok {
		t.Fatal("the provider is no Reaper")
	}
	return r
}

// containers lists the containers of a run.
func containers(t *testing.T, engine, run string) string {
	t.Helper()
	return engineSays(t, engine, "ps", "--all", "--filter", "label=ralph.run="+run, "--format", "{{.Names}}")
}

// engineSays returns the output of an engine's program.
func engineSays(t *testing.T, engine string, args ...string) string {
	t.Helper()
	var out strings.Builder
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: append([]string{engine}, args...), Dir: "/", Env: os.Environ(), Stdout: &out, Stderr: &out,
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%s %q: %+v, %v: %s", engine, args, exit, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// AbandonedDisks finds the disks of sandboxes without knowing the run, and they can be removed. It reports unimported work
// and the command that shows it.
func TestAbandonedDisks(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		c := r.config(t)
		for _, keep := range []bool{false, true} {
			c.Keep = keep
			p := newProject(t, fmt.Sprintf("disks-%s-%v", name, keep))
			crash{Rig: name, Config: c, Spec: p.spec, Script: "echo made >made.txt; echo ready; exec sleep 1000"}.happen(t)
			provider, ok := sandboxes.As[*container.Provider](r.provider(c))
			if !ok {
				t.Fatal("it is no container.Provider")
			}
			left := func() (container.LeftDisk, bool) {
				t.Helper()
				found, err := provider.AbandonedDisks(t.Context())
				if err != nil || len(found) > 1 {
					t.Fatalf("found %+v, %v", found, err)
				}
				d, ok := found[p.spec.Run]
				return d, ok
			}
			d, ok := left()
			if !ok || !d.Unsaved {
				t.Fatalf("after the crash: %+v", d)
			}
			words := strings.Fields(strings.Replace(d.Show, " -it ", " ", 1))
			out, err := exec.CommandContext(t.Context(), words[0], append(words[1:], "-c", "cat */made.txt")...).Output()
			if string(out) != "made\n" {
				t.Errorf("%s shows %q, %v", d.Show, out, err)
			}
			box := enter(t, r.provider(c), p.spec)
			if err := box.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d, ok := left(); ok != keep || d.Unsaved {
				t.Errorf("after a sandbox that was closed, with keep %v: %+v", keep, d)
			}
			if box = enter(t, r.provider(c), p.spec); keep { // also if containers were kept with the disk
				if got, _ := inside(t, box, "! test -e made.txt || echo made"); got != "" {
					t.Errorf("the copy is not fresh: %s", got)
				}
			}
			if k, ok := sandboxes.As[sandboxes.DiskKeeper](box); !ok || k.KeepDisk() == "" {
				t.Error("KeepDisk gives no command")
			}
			if err := box.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p.volumes(r.engine.Name) == "" {
				t.Error("KeepDisk keeps nothing")
			}
			containers, err := provider.Abandoned(t.Context())
			for container := range containers {
				err = errors.Join(err, provider.Discard(t.Context(), container))
			}
			d2 := c
			d2.Keep = false
			err = errors.Join(err, reaper(t, r.provider(d2)).Reap(t.Context(), p.spec.Run), provider.RemoveDisk(t.Context(), p.spec.Run))
			if left := p.volumes(r.engine.Name); left != "" || err != nil {
				t.Errorf("left behind: %s, %v", left, err)
			}
		}
	})
}
