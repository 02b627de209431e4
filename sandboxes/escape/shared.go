package escape

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ralph-pool/ralph/sandboxes"
)

// sharedAttacks need only a shell and git inside.
func sharedAttacks() []Attack {
	return []Attack{
		{Name: "secrets/a file of the host by its path", Brief: true, Make: readHostFile},
		{Name: "network/the host's loopback", Brief: true, Make: reachLoopback},
		{Name: "files/the worktree's .git file", Brief: true, Make: replaceGitFile},
		{Name: "files/what is shown read-only", Brief: true, Make: writeReadOnly},
		{Name: "files/links, pipes and devices in the worktree", Brief: true, Make: linkOut},
		{Name: "files/what one sandbox leaves for another", Brief: true, Make: leaveForOthers},
		{Name: "files/links out of what is copied to the host", Brief: true, Make: copyLinksOut},
	}
}

func readHostFile(s *Suite) {
	r := s.open(nil)
	out, _, err := r.Sh(`cat "$1/secret" "$1/other/secret"; echo x >"$1/planted"; echo x >"$1/secret"; true`, r.host)
	if err != nil || strings.Contains(out, secret) {
		s.Errorf("a file of the host is read (%v)", err)
	}
	r.Works()
	r.checkUnchanged()
}

func reachLoopback(s *Suite) {
	l, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	var reached atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	stop := func() { _ = l.Close(); <-ended }
	s.Cleanup(stop)
	r := s.open(nil)
	_, _, err = r.Sh(fmt.Sprintf("git ls-remote http://%s/x", l.Addr()))
	stop()
	if err != nil {
		s.Error(err)
	}
	if n := reached.Load(); n > 0 {
		s.Errorf("the sandbox has connected to the host")
	}
}

func replaceGitFile(s *Suite) {
	r := s.open(nil)
	copied := s.Provider.Capabilities().Files == sandboxes.Copy
	look, want := "cat .git", "gitdir: "+r.spec.GitDir+"\n"
	if copied { // the private repository itself is mounted there
		look, want = "[ -d .git ] && [ ! -L .git ] && echo a folder", "a folder\n"
	}
	if out, _, err := r.Sh(look); err != nil || out != want {
		s.Errorf(".git inside is %q, %v", out, err)
	}
	out, _, err := r.Sh(`
	rm -f .git && echo removed
	mv .git moved && echo moved
	mkdir evil && mv -T evil .git && echo replaced by a folder
	echo gitdir: evil >new && mv -f new .git && echo replaced
	ln -sf evil .git && echo linked over
	echo gitdir: evil 2>/dev/null >.git && echo written
	chmod 777 .git && echo changed
	mv "$PWD" "$PWD.moved" && mv "$PWD.moved" "$PWD" && echo moved away
	exec 2>/dev/null; echo gitdir: evil >.git && echo written
	true`)
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if s.vm() && line == "moved away" {
			continue // nothing of the host is beside it
		}
		if copied && slices.Contains([]string{"replaced", "linked over", "changed"}, line) {
			continue // it changes the private repository, which is allowed
		}
		if line != "" && !strings.Contains(line, ":") {
			s.Errorf("the .git file was %s", line)
		}
	}
	if err != nil {
		s.Error(err)
	}
	if out, _, err := r.Sh(look); err != nil || out != want {
		s.Errorf(".git inside is now %q, %v", out, err)
	}
	r.Works()
	r.checkUnchanged()
}

func writeReadOnly(s *Suite) {
	r := s.open(nil)
	for _, script := range []string{
		`echo x >"$1/planted"`, `echo x >"$1/object"`, `rm "$1/object"`, `chmod 777 "$1/object"`, `mv "$1/object" .`,
		`ln "$1/object" stolen`, `ln /usr/bin/env stolen`, `touch -d 1990-01-01 "$1/object"`, `mkdir "$1/dir"`,
	} {
		if out, exit, err := r.Sh(script, r.spec.Objects[0]); err != nil || exit.OK() {
			s.Errorf("%s: %+v, %v, %s", script, exit, err, out)
		}
	}
	r.Works()
	r.checkUnchanged()
}

func linkOut(s *Suite) {
	r := s.open(nil)
	out, _, err := r.Sh(`
	ln -s "$1/secret" link; ln -s "$1" folder; ln -s /proc/1/root root; mkfifo pipe; mknod device c 1 1; mknod disk b 254 0
	cat link folder/secret root/etc/shadow; echo x >folder/planted; echo x >link; true`, r.host)
	if err != nil || strings.Contains(out, secret) {
		s.Errorf("a file of the host is read (%v)", err)
	}
	walkErr := filepath.WalkDir(r.spec.Worktree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&(os.ModeDevice|os.ModeSetuid) != 0 {
			s.Errorf("%s is %v on the host", path, info.Mode())
		}
		return err
	})
	if walkErr != nil {
		s.Error(walkErr)
	}
	r.Works()
	r.checkUnchanged()
}

func leaveForOthers(s *Suite) {
	r := s.open(nil)
	name := ".planted-" + rand.Text()
	places := `"$HOME" "${XDG_CACHE_HOME:-$HOME}" "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm /run /usr/local/bin /etc`
	if _, _, err := r.Sh("for dir in "+places+`; do echo x >"$dir/$1"; done 2>/dev/null`, name); err != nil {
		s.Fatal(err)
	}
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/dev/shm", "/run", "/usr/local/bin", "/etc"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			s.Errorf("%s of the host is written to", dir)
		}
	}
	look := func(other *Room) {
		out, _, err := other.Sh("for dir in "+places+`; do [ ! -e "$dir/$1" ] || echo "$dir"; done`, name)
		if err != nil || out != "" {
			s.Errorf("another sandbox has what this one wrote to %s, %v", strings.Fields(out), err)
		}
	}
	look(s.open(nil)) // while the first one is open
	if err := r.Close(s.Bounded()); err != nil {
		s.Fatal(err)
	}
	look(s.open(nil))
}

func copyLinksOut(s *Suite) {
	r := s.open(nil)
	fetcher, ok := sandboxes.As[sandboxes.Fetcher](r.Sandbox)
	if !ok {
		s.NotHere() // nothing is copied
		return
	}
	if out, exit, err := r.Sh(`
	mkdir out; echo fine >out/fine; ln -s "$1/secret" out/link; ln -s "$1" out/folder; ln -s ../../../etc/hostname out/up
	ln -s . out/here; mkfifo out/pipe`, r.host); err != nil || !exit.OK() {
		s.Fatalf("%+v, %v, %s", exit, err, out)
	}
	into, err := os.OpenRoot(s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = into.Close() }()
	var refused *sandboxes.RefusedError
	if err := fetcher.Fetch(s.Bounded(), []string{"out"}, into, sandboxes.FetchLimits{}); !errors.As(err, &refused) {
		s.Errorf("nothing was refused: %v", err)
	}
	if text, err := into.ReadFile("out/fine"); err != nil || string(text) != "fine\n" {
		s.Errorf("an honest file is missing: %v", err)
	}
	for _, name := range []string{"link", "folder", "up", "pipe"} {
		if _, err := into.Lstat("out/" + name); err == nil {
			s.Errorf("out/%s is on the host", name)
		}
	}
	r.Works()
	r.checkUnchanged()
}
