package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInside checks that no link in the repository leads ralph out of it.
func TestInside(t *testing.T) {
	t.Parallel()
	const file, out, give = "R/repo/.ralph/config.yaml:1: ", " leads out of the repository, to ", "; if you mean that, give --local-dir"
	for _, c := range []struct {
		name, repo string
		args       []string
		link       string // target of the link .ralph/backlog
		want       string
	}{
		{name: "nothing there"},
		{name: "within", link: "../issues"},
		{name: "out", link: "../../elsewhere", want: "local.dir: R/repo/.ralph/backlog" + out + "R/elsewhere" + give},
		{name: "git directory", link: "../.git", want: "local.dir: R/repo/.ralph/backlog" + out + "R/repo/.git" + give},
		{name: "named by the file", repo: "local: {dir: .ralph/backlog}\n",
			link: "../../elsewhere", want: file + "local.dir: R/repo/.ralph/backlog" + out + "R/elsewhere" + give},
		{name: "below a link", repo: "local: {dir: .ralph/backlog/not/yet}\n",
			link: "../../elsewhere", want: file + "local.dir: R/repo/.ralph/backlog/not/yet" + out + "R/elsewhere/not/yet" + give},
		{name: "to nowhere", link: "../../nowhere", want: "local.dir: cannot be read: no such file or directory"},
		{name: "named by a flag", args: []string{"--local-dir=../repo/.ralph/backlog"}, link: "../../elsewhere"},
		{name: "trusted, in plain words", repo: "local: {dir: ../elsewhere}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, root, err := setup{repo: c.repo + "\n", args: c.args}.load(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"repo/.git", "repo/issues", "elsewhere"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.link != "" {
				if err := os.Symlink(c.link, filepath.Join(root, "repo/.ralph/backlog")); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if err := l.Inside("local.dir", l.Config.LocalDir); err != nil {
				got = strings.ReplaceAll(err.Error(), root, "R")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNamed lists the files that the configuration in effect names.
func TestNamed(t *testing.T) {
	t.Parallel()
	l, root, err := setup{
		repo: "local: {dir: issues}\nrequest-template: docs/request.md\nagent-command: [sh, .ralph/config.yaml, missing]\n",
		user: "token-command: [tools/token, x]\nca-file: /etc/ca.pem\n", args: []string{"--prompt-file=p.md"},
	}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range l.Named() {
		got = append(got, strings.ReplaceAll(f.Setting+": "+f.Path, root, "R"))
	}
	slices.Sort(got)
	want := []string{
		"agent-command: .ralph/config.yaml", "ca-file: /etc/ca.pem", "local.dir: R/repo/issues", "prompt-file: R/cwd/p.md",
		"request-template: R/repo/docs/request.md", "token-command: R/repo/tools/token",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
