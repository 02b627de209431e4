package sandboxtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/sandboxes"
)

// homeCases apply to providers with Home.
var homeCases = map[string]func(*suite){
	"home/others find it, and cannot change it": func(s *suite) {
		layer := s.fillHome(`mkdir -p cache/deep && echo one >cache/deep/a && echo two >b && ln b c && chmod 500 cache/deep && ln -s b link && ln -s / root`)
		const attack = `cd ~ && cat cache/deep/a link && echo changed >b && chmod 700 cache/deep && rm -r cache &&
				mkdir cache && echo new >cache/x && ls -A && ls -A cache
			touch upper-here; setfattr -n user.overlay.opaque -v y . 2>/dev/null; setfattr -n user.overlay.redirect -v /etc cache 2>/dev/null
			for layer in /.layer /.ralph/home; do
				echo changed >$layer/b; rm -f $layer/c; chmod 700 $layer/cache/deep; ln -f ~/b $layer/d; mount -o remount,rw $layer; umount $layer
			done 2>/dev/null; umount ~ 2>/dev/null && echo unmounted; true`
		for range 2 { // the second sandbox finds no changes of the first
			if got := strings.Fields(s.openHome(layer, sandboxes.Spec{}).text(attack)); strings.Join(got, " ") != "one two b c cache link root x" {
				s.Errorf("inside: %q", got)
			}
		}
		for name, want := range map[string]string{"b": "two\n", "c": "two\n", "cache/deep/a": "one\n"} {
			if got, err := os.ReadFile(filepath.Join(layer, name)); err != nil || string(got) != want {
				s.Errorf("%s in the layer is %q, %v", name, got, err)
			}
		}
		if names, err := os.ReadDir(layer); err != nil || len(names) != 5 {
			s.Errorf("the layer has %v, %v", names, err)
		}
	},
	"home/looks as it was filled": func(s *suite) {
		const look = `cd ~; ls -l a "c d/e" "c d/l" | cut -c1-10; readlink "c d/l"
			test a -nt b && echo newer; test a -ef "c d/h" && echo same; test -e pipe && echo pipe; "c d/e"`
		layer := s.fillHome(`mkdir "c d"; touch -t 200001010000 b; touch -t 200101010000 a; chmod 640 a
			printf '#!/bin/sh\necho runs\n' >"c d/e"; chmod 555 "c d/e"; ln -s ../b "c d/l"; ln a "c d/h"; chmod 555 "c d"`)
		if got := s.openHome(layer, sandboxes.Spec{}).text(look); got != "-rw-r-----\n-r-xr-xr-x\nlrwxrwxrwx\n../b\nnewer\nsame\nruns\n" {
			s.Errorf("inside: %q", got)
		}
	},
	"home/belongs to the user": func(s *suite) {
		layer := s.fillHome(`mkdir -p a/b && echo x >a/b/c`)
		err := filepath.Walk(layer, func(path string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			if st, ok := info.Sys().(*syscall.Stat_t); !ok || os.Geteuid() != 0 && int(st.Uid) != os.Geteuid() {
				s.Errorf("%s belongs to another user: %+v", path, info.Sys())
			}
			return nil
		})
		if err != nil {
			s.Error(err)
		}
	},
	"home/mounts below it": func(s *suite) {
		shown := s.options.Worktree(s.T)
		if err := os.WriteFile(filepath.Join(shown, "file"), []byte("shown\n"), 0o644); err != nil {
			s.Fatal(err)
		}
		mounts := []sandboxes.Mount{
			{Host: shown, Inside: s.home() + "/.config/tool", ReadOnly: true},
			{Host: filepath.Join(shown, "file"), Inside: s.home() + "/.toolrc", ReadOnly: true},
		}
		layer := s.options.Worktree(s.T)
		fill := s.openHome(layer, sandboxes.Spec{FillHome: true, Mounts: mounts})
		fill.text(`cd ~ && cat .config/tool/file .toolrc && echo one >a && mkdir -p .config/other && echo two >.config/other/b`)
		if err := fill.Close(s.boundedContext()); err != nil {
			s.Fatal(err)
		}
		if got := s.openHome(layer, sandboxes.Spec{Mounts: mounts}).text(`cd ~ && cat a .toolrc .config/tool/file`); got != "one\nshown\nshown\n" {
			s.Errorf("inside: %q", got)
		}
		if err := os.RemoveAll(layer); err != nil {
			s.Error(err)
		}
	},
	"home/what a run writes is bounded": func(s *suite) {
		const most = 16 << 20
		limits := sandboxes.Limits{Disk: most}
		layer := s.fillHome(`head -c 20000000 /dev/zero >big`) // more than the limit
		got := s.openHome(layer, sandboxes.Spec{Limits: limits}).text(`cd ~; wc -c <big; head -c 100000000 /dev/zero >more 2>/dev/null; wc -c <more`)
		words := strings.Fields(got)
		if len(words) != 2 || words[0] != "20000000" {
			s.Fatalf("inside: %q", got)
		}
		if n, err := strconv.Atoi(words[1]); err != nil || n > most || n < most/4 {
			s.Errorf("it wrote %d bytes, %v", n, err)
		}
	},
}

// home returns the path of the home inside.
func (s *suite) home() string {
	s.Helper()
	return strings.TrimSpace(s.open().text(`echo ~`))
}

// openHome opens a sandbox with a home.
func (s *suite) openHome(layer string, spec sandboxes.Spec) *room {
	s.Helper()
	spec.Home = layer
	return s.openSpec(spec)
}

// fillHome returns a home that a script has filled.
func (s *suite) fillHome(script string) (layer string) {
	s.Helper()
	layer = s.options.Worktree(s.T)
	s.Cleanup(func() { // or an ordinary user cannot remove read-only folders
		_ = filepath.Walk(layer, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.IsDir() {
				err = os.Chmod(path, 0o700) //nolint:gosec // a folder
			}
			return err
		})
	})
	r := s.openHome(layer, sandboxes.Spec{FillHome: true})
	r.text("cd ~ && " + script)
	if err := r.Close(s.boundedContext()); err != nil {
		s.Fatal(err)
	}
	return layer
}
