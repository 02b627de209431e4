package escapetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

func fileCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"files/the worktree's .git file": func(s *suite) {
			r := s.open(nil)
			copied := s.provider.Capabilities().Files == sandboxes.Copy
			look, want := "cat .git", "gitdir: "+r.spec.GitDir+"\n"
			if copied { // the private repository itself is there, mounted
				look, want = "[ -d .git ] && [ ! -L .git ] && echo a folder", "a folder\n"
			}
			if out, _, err := r.sh(look); err != nil || out != want {
				s.Errorf(".git inside is %q, %v", out, err)
			}
			out, _, err := r.sh(`
			rm -f .git && echo removed
			mv .git moved && echo moved
			mkdir evil && mv -T evil .git && echo replaced by a folder
			echo gitdir: evil >new && mv -f new .git && echo replaced
			ln -sf evil .git && echo linked over
			echo gitdir: evil 2>/dev/null >.git && echo written
			chmod 777 .git && echo changed
			mv "$PWD" /tmp/elsewhere && echo moved away
			exec 2>/dev/null; echo gitdir: evil >.git && echo written
			true`)
			for line := range strings.Lines(out) {
				line = strings.TrimSpace(line)
				if copied && slices.Contains([]string{"replaced", "linked over", "changed"}, line) {
					continue // what is written into the private repository, which may be
				}
				if line != "" && !strings.Contains(line, ":") {
					s.Errorf("the .git file was %s", line)
				}
			}
			if err != nil {
				s.Error(err)
			}
			if out, _, err := r.sh(look); err != nil || out != want {
				s.Errorf(".git inside is now %q, %v", out, err)
			}
			r.works()
			r.unchanged()
		},
		"files/what is shown read-only": func(s *suite) {
			r := s.open(nil)
			for _, script := range []string{
				`echo x >"$1/planted"`, `echo x >"$1/object"`, `rm "$1/object"`, `chmod 777 "$1/object"`, `mv "$1/object" .`,
				`ln "$1/object" stolen`, `ln /usr/bin/env stolen`, `touch -d 1990-01-01 "$1/object"`, `mkdir "$1/dir"`,
			} {
				if out, exit, err := r.sh(script, r.spec.Objects[0]); err != nil || exit.OK() {
					s.Errorf("%s: %+v, %v, %s", script, exit, err, out)
				}
			}
			r.works()
			r.unchanged()
		},
		"files/links, pipes and devices in the worktree": func(s *suite) {
			r := s.open(nil)
			out, _, err := r.sh(`
			ln -s "$1/secret" link; ln -s "$1" folder; ln -s /proc/1/root root; mkfifo pipe; mknod device c 1 1; mknod disk b 254 0
			cat link folder/secret root/etc/shadow; echo x >folder/planted; echo x >link; true`, r.host)
			if err != nil || strings.Contains(out, secret) {
				s.Errorf("%v: %s", err, out)
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
			r.works()
			r.unchanged()
		},
		"files/mounts that would open the sandbox": func(s *suite) {
			r := s.open(nil) // without them it opens
			mounts := []sandboxes.Mount{
				{Host: "/usr", Inside: "/"}, {Host: "/usr", Inside: "/proc/self"}, {Host: "/usr", Inside: "relative"},
			}
			for _, host := range []string{"/", "/proc", "/dev", "/run", "/sys", "/proc/self/root", "/dev/null", "/no/such/path"} {
				m := sandboxes.Mount{Host: host, Inside: "/host"}
				if s.inPlace() {
					m.Inside = host
				}
				mounts = append(mounts, m)
			}
			for _, m := range mounts {
				spec := r.spec
				spec.Run, spec.Mounts = "escape-mounts", []sandboxes.Mount{m}
				box, err := s.provider.Open(s.bounded(), spec)
				if err == nil {
					s.Errorf("%+v is accepted", m)
					_ = box.Close(s.bounded())
				}
			}
		},
	}
}
