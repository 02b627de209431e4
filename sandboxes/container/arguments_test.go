package container

import (
	"cmp"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/syntax"
)

var update = flag.Bool("update", false, "write the golden command lines anew")

// TestCommandLines compares the command line of each kind of container with testdata/golden, one argument per line.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	spec := sandboxes.Spec{Run: "run 1", Worktree: "/w/tree"}
	git := spec
	git.GitDir, git.Objects = "/w/private.git", []string{"/repo/.git/objects"}
	egress := git
	egress.Egress = "/run/egress.sock"
	knobs := Config{
		Home: "/root", Workdir: "/elsewhere", SELinux: "disable", Groups: []string{"video"}, Devices: []string{"/dev/kvm"},
		Args: []string{"--add-host", "db:10.0.0.2"}, Network: "bridge", Runtime: "runsc",
	}
	fill := spec
	fill.Home, fill.FillHome = "/state/home,1", true
	warm := egress
	warm.Home = fill.Home
	onlyEgress := spec
	onlyEgress.Egress = egress.Egress
	disk := &sandboxes.Disk{Folders: map[string]string{
		"/w/tree": "worktree", "/w/tree/.git": "repository", "/w/private.git": "repository", "/data": "mount1",
	}, ReadOnly: []string{"/data"}}
	relabel := Config{SELinux: "private"}
	for name, tt := range map[string]struct {
		engine Engine
		config Config
		spec   sandboxes.Spec
		userns string
		limits sandboxes.Limits
		mounts []sandboxes.Mount
		layer  int64
		resolv []string
		disk   *sandboxes.Disk
	}{
		"docker":          {engine: Docker(), spec: spec},
		"docker-git":      {engine: Docker(), spec: git},
		"docker-egress":   {engine: Docker(), spec: egress},
		"docker-knobs":    {engine: Docker(), spec: spec, config: knobs, limits: sandboxes.Limits{Memory: 1 << 30, CPUs: 1.5, PIDs: 99, Disk: 1 << 20}},
		"docker-copy":     {engine: Docker(), spec: onlyEgress, disk: disk, resolv: []string{"--dns", "127.0.0.1"}},
		"podman-copy":     {engine: Podman(), spec: spec, disk: disk},
		"podman":          {engine: Podman(), spec: spec},
		"podman-egress":   {engine: Podman(), spec: egress},
		"podman-knobs":    {engine: Podman(), spec: spec, config: knobs},
		"podman-rootless": {engine: Podman(), spec: git, config: Config{Unbounded: true}, userns: "keep-id:uid=1000,gid=1000"},
		"docker-home":     {engine: Docker(), spec: warm, layer: 5 << 20},
		"podman-fill":     {engine: Podman(), spec: fill, config: relabel},
		"podman-relabel": {engine: Podman(), spec: spec, config: relabel, mounts: []sandboxes.Mount{
			{Host: `/a,b"c:d`, Inside: "/data,x", ReadOnly: true}, {Host: "/plain", Inside: "/plain"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tt.config
			c.Image, c.StateDir = "ralph:x", "/state"
			c.Helper = "/bin/ralph"
			p := New(tt.engine, c)
			if p.configErr != nil {
				t.Fatal(p.configErr)
			}
			tt.spec.Disk, tt.spec.Mounts = tt.disk, tt.mounts
			pl := &plan{
				provider: p, spec: tt.spec, user: user{1000, 100}, userns: tt.userns,
				name: "ralph-0-a", state: "/state/ralph-0-a", workdir: cmp.Or(c.Workdir, "/w/tree"), limits: tt.limits.WithDefaults(), layer: tt.layer, resolv: tt.resolv,
			}
			args, err := pl.arguments()
			if err != nil {
				t.Fatal(err)
			}
			for i, arg := range args {
				if strings.HasPrefix(arg, "ralph.process=") {
					args[i] = "ralph.process=SELF"
				}
			}
			got := strings.Join(args, "\n") + "\n"
			file := filepath.Join("testdata/golden", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != got {
				t.Errorf("the command line is (-update writes it)\n%s\nwant\n%s%v", got, want, err)
			}
			if strings.Contains(got, "--privileged") || strings.Contains(got, "docker.sock") {
				t.Error("the container does not isolate")
			}
		})
	}
}

func TestDockerCannotRelabel(t *testing.T) {
	t.Parallel()
	pl := &plan{provider: New(Docker(), Config{Image: "x", SELinux: "shared", Helper: "/bin/ralph"})}
	if _, err := pl.arguments(); !errors.Is(err, sandboxes.ErrUnsupported) {
		t.Errorf("error is %v", err)
	}
}

// FuzzMountFlag: a mount with any path parses into the same fields, or is refused.
func FuzzMountFlag(f *testing.F) {
	f.Add("/a", "/b", true)
	f.Add(`/a,b"c`, "/ü =,readonly", false)
	f.Add("/a\nb", "/c", false)
	f.Fuzz(func(t *testing.T, host, inside string, readOnly bool) {
		flag, err := syntax.Mount("bind", sandboxes.Mount{Host: host, Inside: inside, ReadOnly: readOnly}, "")
		if err != nil {
			return
		}
		fields, err := csv.NewReader(strings.NewReader(flag)).Read()
		if err != nil {
			t.Fatalf("%q: %v", flag, err)
		}
		want := []string{"type=bind", "src=" + host, "dst=" + inside}
		if readOnly {
			want = append(want, "readonly")
		}
		if strings.Join(fields, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q reads back as %q", flag, fields)
		}
	})
}
