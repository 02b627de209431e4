package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// Mounts are copied in, read-only; what would have to be written back is refused.
func TestMountsOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		dir := folder(t)
		for path, mode := range map[string]os.FileMode{"d/sub/plain": 0o600, "d/program": 0o700, "file": 0o600, "other": 0o600} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte("#!/bin/sh\necho "+path+"\n"), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("sub/plain", filepath.Join(dir, "d/link")); err != nil {
			t.Fatal(err)
		}
		wt := folder(t)
		box := enter(t, container.New(r.engine, r.config(t)), sandboxes.Spec{
			Worktree: wt, Run: "mounts-" + name + filepath.Base(filepath.Dir(wt)), Mounts: []sandboxes.Mount{
				{Host: filepath.Join(dir, "d"), Inside: "/data", ReadOnly: true},
				{Host: filepath.Join(dir, "file"), Inside: "/srv/x/file", ReadOnly: true},
				{Host: filepath.Join(dir, "other"), Inside: "/srv/x/renamed", ReadOnly: true},
			},
		})
		got, _ := inside(t, box, "/data/program; sh /data/link; sh /srv/x/file; sh /srv/x/renamed; touch /data/y /srv/x/file 2>&1 | grep -cE 'Read-only|denied'; grep -cE ' (/data|/srv/x) [^ ]+ ro,' /proc/mounts; rm -f /srv/x/file 2>/dev/null || echo stays")
		if want := "d/program\nd/sub/plain\nfile\nother\n2\n2\nstays"; got != want {
			t.Errorf("inside there is\n%s\nwant\n%s", got, want)
		}
		for mount, want := range map[sandboxes.Mount]string{
			{Host: dir, Inside: "/data"}: "mount " + dir + ": files are copied into the container, so that it cannot write to the host: " +
				"sandbox cannot do this; make the mount readonly",
			{Host: filepath.Join(dir, "file"), Inside: "/x/file", Own: true}: "mount " + filepath.Join(dir, "file") +
				": files are copied into the container, so that it cannot write to the host: sandbox cannot do this; make the mount readonly",
			{Host: filepath.Join(dir, "file"), Inside: "/file", ReadOnly: true}: "mount " + filepath.Join(dir, "file") +
				": a file is copied into a folder of its own, and /file is at the top: sandbox cannot do this; choose a place in a folder",
		} {
			_, err := container.New(r.engine, r.config(t)).Open(t.Context(), sandboxes.Spec{
				Worktree: wt, Run: "mount-" + name + filepath.Base(filepath.Dir(wt)), Mounts: []sandboxes.Mount{mount},
			})
			if want = "open sandbox " + r.engine.Name + ": " + want; !errors.Is(err, sandboxes.ErrUnsupported) || err.Error() != want {
				t.Errorf("error is %v\nwant %s", err, want)
			}
		}
	})
}

// A folder that is the run's alone is written to, also by a command whose ralph dies.
func TestOwnMountsOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		c, wt, dir := r.config(t), folder(t), folder(t)
		host := filepath.Join(dir, "a \"quoted\", name")
		if err := os.Mkdir(host, 0o755); err != nil {
			t.Fatal(err)
		}
		write := func(path, text string) {
			if err := os.WriteFile(filepath.Join(host, path), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		read := func(path string) string {
			text, err := os.ReadFile(filepath.Join(host, path))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			return string(text)
		}
		write("old", "old")
		write("gone", "gone")
		spec := sandboxes.Spec{
			Worktree: wt, Run: "own-" + name + filepath.Base(filepath.Dir(wt)),
			Mounts: []sandboxes.Mount{{Host: host, Inside: "/artefacts", Own: true}},
		}
		box := enter(t, container.New(r.engine, c), spec)
		if got, exit := inside(t, box, "cd /artefacts; cat old; rm gone; mkdir sub; echo new >sub/new; ln -s /etc/passwd out; printf more >>old"); got != "old" || !exit.OK() {
			t.Errorf("inside there is %q, %+v", got, exit)
		}
		if got := read("old") + read("gone") + read("sub/new") + read("out"); got != "oldmorenew\n" {
			t.Errorf("on the host there is %q", got)
		}
		write("later", "from the host")
		if got, _ := inside(t, box, "cat /artefacts/later; rm /artefacts/later"); got != "from the host" || read("later") != "" {
			t.Errorf("inside there is %q", got)
		}
		spec.Run += "-crash"
		crash{Rig: name, Config: c, Spec: spec, Script: "cd /artefacts; rm old; echo saved >saved; echo ready; exec sleep 1000"}.happen(t)
		if err := container.New(r.engine, c).Reap(t.Context(), spec.Run); err != nil {
			t.Fatal(err)
		}
		if got := read("saved") + read("old"); got != "saved\n" {
			t.Errorf("after the clean-up there is %q", got)
		}
		if left := engineSays(t, r.engine.Name, "volume", "ls", "--quiet", "--filter", "label=ralph.run="+spec.Run); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// A sandbox that cannot be opened leaves nothing with the engine.
func TestFailedOpenOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		c, wt := r.config(t), folder(t)
		c.Args = []string{"--no-such-flag"}
		run := "failed-" + name + filepath.Base(filepath.Dir(wt))
		if _, err := container.New(r.engine, c).Open(t.Context(), sandboxes.Spec{Run: run, Worktree: wt}); err == nil {
			t.Fatal("Open succeeds")
		}
		left := containers(t, r.engine.Name, run) + engineSays(t, r.engine.Name, "volume", "ls", "--quiet", "--filter", "label=ralph.run="+run)
		if files, err := os.ReadDir(c.StateDir); left != "" || err != nil || len(files) > 0 {
			t.Errorf("left behind: %s, %v, %v", left, files, err)
		}
	})
}
