package landlock_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// linked creates a worktree with a .git file, and a private repository.
func linked(t *testing.T) sandboxes.Spec {
	t.Helper()
	dir := t.TempDir()
	spec := sandboxes.Spec{Run: "open-" + dir, Worktree: filepath.Join(dir, "tree"), GitDir: filepath.Join(dir, "private")}
	for _, d := range []string{spec.Worktree, spec.GitDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(spec.Worktree, ".git"), []byte("gitdir: of-the-user\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestTheGitFileComesBack: Close, and Reap after a crash, restore the file whatever a command has done to it.
func TestTheGitFileComesBack(t *testing.T) {
	t.Parallel()
	p := landlock.New(landlock.Config{})
	for name, end := range map[string]func(context.Context, sandboxes.Sandbox, string) error{
		"Close": func(ctx context.Context, box sandboxes.Sandbox, _ string) error { return box.Close(ctx) },
		"Reap":  func(ctx context.Context, _ sandboxes.Sandbox, run string) error { return p.Reap(ctx, run) },
	} {
		spec := linked(t)
		box, err := p.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{
			Argv: []string{"sh", "-ec", `cat .git; rm .git; mkdir -p .git/hooks; ln -s / .git/root; chmod 500 .git/hooks
				mkdir "$HOME/a"; touch "$HOME/a/b"; chmod 500 "$HOME/a"; touch "$TMPDIR/c"`}, Stdout: &out, Stderr: &out,
		})
		if err != nil || !exit.OK() || out.String() != "gitdir: "+spec.GitDir+"\n" {
			t.Errorf("%+v, %v, %s", exit, err, &out)
		}
		if err := end(t.Context(), box, spec.Run); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(filepath.Join(spec.Worktree, ".git")); err != nil || string(got) != "gitdir: of-the-user\n" {
			t.Errorf("%s: .git is %q, %v", name, got, err)
		}
		nothingLeft(t, spec.Run)
		if err := box.Close(t.Context()); err != nil {
			t.Errorf("Close after %s: %v", name, err)
		}
	}
}

// TestReapBelievesNobodyElse: in a folder that everybody can write to, other users could plant a saved .git file.
func TestReapBelievesNobodyElse(t *testing.T) {
	t.Parallel()
	spec, base := linked(t), t.TempDir()
	planted := filepath.Join(base, landlock.ScratchPrefix(spec.Run)+"planted")
	note := `{"worktree":"` + spec.Worktree + `","content":"ZXZpbA=="}`
	if err := errors.Join(os.Mkdir(planted, 0o777), os.Chmod(planted, 0o777), os.WriteFile(filepath.Join(planted, "git-file.json"), []byte(note), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := landlock.New(landlock.Config{Scratch: base}).Reap(t.Context(), spec.Run); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(spec.Worktree, ".git")); err != nil || string(got) != "gitdir: of-the-user\n" {
		t.Errorf(".git is %q, %v", got, err)
	}
}

// TestReapInAnyFolder: the folder's name is not used as a pattern.
func TestReapInAnyFolder(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "a [b")
	left := filepath.Join(base, landlock.ScratchPrefix("run")+"left")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := landlock.New(landlock.Config{Scratch: base}).Reap(t.Context(), "run"); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(base); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

func TestOpenRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"tree", "tree/sub", "other"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree := filepath.Join(dir, "tree")
	tests := map[string]struct {
		spec sandboxes.Spec
		want string
	}{
		"another place": {
			sandboxes.Spec{Run: "x", Worktree: tree, Mounts: []sandboxes.Mount{{Host: filepath.Join(dir, "other"), Inside: "/srv/x"}}},
			"only at its own absolute path",
		},
		"read-only in the worktree": {
			sandboxes.Spec{Run: "x", Worktree: tree, Mounts: []sandboxes.Mount{{Host: tree + "/sub", Inside: tree + "/sub", ReadOnly: true}}},
			"cannot keep it read-only",
		},
		"the root":   {sandboxes.Spec{Run: "x", Worktree: "/"}, "in a place that the sandbox needs for itself"},
		"no run":     {sandboxes.Spec{Worktree: tree}, "has no id"},
		"no .git":    {sandboxes.Spec{Run: "x", Worktree: tree, GitDir: filepath.Join(dir, "other")}, "has no .git file"},
		"no socket":  {sandboxes.Spec{Run: "x", Worktree: tree, Egress: tree}, "is not a socket"},
		"no objects": {sandboxes.Spec{Run: "x", Worktree: tree, Objects: []string{dir + "/none"}}, "object folder"},
	}
	for name, tt := range tests {
		box, err := landlock.New(landlock.Config{}).Open(t.Context(), tt.spec)
		if err == nil {
			_ = box.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestCommandsAreTheWorktreesOwner: ralph as root runs commands as the owner, without root's privileges.
func TestCommandsAreTheWorktreesOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // an ordinary user cannot change to another user
	}
	dir := ofAnother(t)
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{Run: "owner-" + dir, Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{
		Argv:   []string{"sh", "-ec", `id -u; id -G; echo x >made; chmod 640 made; echo y >"$HOME/z"; echo error >/dev/stderr; grep CapBnd /proc/self/status`},
		Stdout: &out, Stderr: &out,
	})
	if want := "65534\n65534\nerror\nCapBnd:\t0000000000000000\n"; err != nil || !exit.OK() || out.String() != want {
		t.Errorf("%+v, %v, %q", exit, err, &out)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "made")); err != nil || info.Mode() != 0o640 {
		t.Errorf("what it made: %+v, %v", info, err)
	}
}

// ofAnother returns a folder that does not belong to root.
func ofAnother(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "landlock-owner-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, sandboxtest.Ordinary, sandboxtest.Ordinary)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestControlGroupsHoldLimits: if this process can create control groups, a sandbox's commands are in one with a shared
// limit.
func TestControlGroupsHoldLimits(t *testing.T) {
	t.Parallel()
	if _, ok := cgroup.Find()["memory"]; !ok || os.Getuid() != 0 {
		return // the supervisor polls instead, as in the other tests
	}
	dir := ofAnother(t)
	p := landlock.New(landlock.Config{})
	run := "groups-" + dir
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: run, Worktree: dir, Limits: sandboxes.Limits{Memory: 128 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{
		// One process fits within the limit, two do not.
		Argv: []string{"sh", "-c", `cat /proc/self/cgroup; echo 0 >/sys/fs/cgroup/memory/cgroup.procs
			fill() { perl -e '$| = 1; push @h, "a" x (8 << 20) for 1..10; print "full\n"; <STDIN>'; }
			mkfifo full wait; exec 8<>wait; fill <&8 >full & read word <full; echo "$word"; fill </dev/null`},
		Stdout: &out, Stderr: &out,
	})
	if err != nil || !strings.Contains(out.String(), "/"+cgroup.Prefix(run)) || !strings.Contains(out.String(), "\nfull\n") {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := sandboxes.NoticesOf(box); len(got) != 1 || !strings.HasSuffix(got[0].Text, " killed at the memory limit of 128 MB") {
		t.Errorf("notices: %q", got)
	}
	nothingLeft(t, run)
}

// TestProcessLimitIsNoticed: a notice reports that processes were refused, if this process can create control groups.
func TestProcessLimitIsNoticed(t *testing.T) {
	t.Parallel()
	if _, ok := cgroup.Find()["pids"]; !ok || os.Getuid() != 0 {
		return // the supervisor reports what it kills, as in the other tests
	}
	const most, user = 40, sandboxtest.Ordinary + 1 // the kernel counts all processes of a user
	for script, want := range map[string][]sandboxes.Notice{
		"true": nil,
		`i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done`: {sandboxes.PIDsReached(most)},
	} {
		dir := ofAnother(t)
		if err := os.Chown(dir, user, user); err != nil {
			t.Fatal(err)
		}
		box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{
			Run: "refused-" + dir, Worktree: dir, Limits: sandboxes.Limits{PIDs: most},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}}); err != nil {
			t.Error(err)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := sandboxes.NoticesOf(box); !slices.Equal(got, want) {
			t.Errorf("%s: notices %q", script, got)
		}
	}
}

// A limit of zero means the default, as with the other providers.
func TestLimitsHaveDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		dir = ofAnother(t)
	}
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "limits-" + dir, Worktree: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "ulimit -f; (exit 7)"}, Stdout: &out})
	if err != nil || exit.Code != 7 || out.String() == "unlimited\n" {
		t.Errorf("%+v, %v, files of %s", exit, err, &out)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
