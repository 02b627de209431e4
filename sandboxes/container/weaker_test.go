package container_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// Capabilities names exactly the settings that weaken the isolation.
func TestWeaker(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config container.Config
		want   string
	}{
		"default":  {container.Config{}, ""},
		"harmless": {container.Config{User: "1:1", SELinux: "private", UserNamespace: "auto", Workdir: "/w", Keep: true, Runtime: "runsc"}, ""},
		"network":  {container.Config{Network: "bridge"}, "the network bridge has no allow-list"},
		"userns":   {container.Config{UserNamespace: "host"}, "user ids inside are those of the host"},
		"selinux":  {container.Config{SELinux: "disable"}, "SELinux does not confine it"},
		"groups":   {container.Config{Groups: []string{"kvm", "5"}}, "commands are in additional groups (kvm, 5)"},
		"args": {
			container.Config{Args: []string{"--cap-add", "ALL"}, Devices: []string{"/dev/kvm"}},
			"it has devices of the host (/dev/kvm); it is started with additional arguments (--cap-add ALL)",
		},
	} {
		can := container.New(container.Docker(), tt.config).Capabilities()
		if can.Weaker != tt.want || can.Egress != (name != "network") {
			t.Errorf("%s: %+v, want %q", name, can, tt.want)
		}
	}
}

// A container has the requested name. A name that is taken is refused, and its owner is unaffected.
func TestOwnName(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		wt := folder(t)
		spec := sandboxes.Spec{Worktree: wt, Run: "own-" + name + filepath.Base(filepath.Dir(wt)), Name: "ralph-own-" + filepath.Base(filepath.Dir(wt))}
		c := r.config(t)
		p := r.provider(c)
		first := enter(t, p, spec)
		prefix, err := prefixer(t, first).CommandPrefix()
		if err != nil || !strings.Contains(strings.Join(prefix, " "), " "+spec.Name+" ") {
			t.Errorf("prefix %q, %v", prefix, err)
		}
		again := spec
		again.Run += "-again"
		if _, err := p.Open(t.Context(), again); err == nil || !strings.Contains(err.Error(), spec.Name) {
			t.Errorf("a name that is taken: %v", err)
		}
		if _, exit := inside(t, first, "true"); !exit.OK() {
			t.Error("the first sandbox does not work any more")
		}
		if err := reaper(t, p).Reap(t.Context(), spec.Run); err != nil {
			t.Fatal(err)
		}
		args := append(r.engine.Command, "ps", "--all", "--quiet", "--filter", "name="+spec.Name)
		if len(r.engine.Command) == 0 {
			args = append([]string{r.engine.Name}, args...)
		}
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("after Reap there is %q, %v", out, err)
		}
	})
}

// With Workdir, the worktree and its repository are at that path.
func TestWorkdir(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		wt := folder(t)
		c := r.config(t)
		if r.copies {
			return // refused
		}
		c.Workdir = "/workspace"
		box := enter(t, container.New(r.engine, c), sandboxes.Spec{Worktree: wt, Run: "workdir-" + name + filepath.Base(filepath.Dir(wt))})
		if out, exit := inside(t, box, "pwd; echo x >made; ls -d "+wt); !strings.Contains(out, "/workspace\n") || exit.OK() || box.Workdir() != "/workspace" {
			t.Errorf("%q, %+v", out, exit)
		}
		if _, err := os.Stat(filepath.Join(wt, "made")); err != nil {
			t.Error(err)
		}
	})
}
