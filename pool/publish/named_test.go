package publish_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/named"
)

// Files that the user's own git configuration names are protected: git would run or obey them after a merge.
func TestFilesNamedByGitConfiguration(t *testing.T) {
	t.Parallel()
	base := `mkdir tools; echo base | tee sm.sh Makefile tools/sm.sh tools/lib.sh tools/Makefile > /dev/null; git add -A; git commit -qm base; `
	up := `mkdir -p real/dir; echo x > real/dir/x; ln -s real/dir l; git add -A; git commit -qm links; git config core.hooksPath l/../dev/hooks`
	for name, c := range map[string]struct{ config, script, want string }{
		"hooks folder":         {`git config core.hooksPath hooks`, `mkdir hooks; echo x > hooks/post-merge`, "hooks/post-merge is protected (core.hookspath names it)"},
		"absolute":             {`git config core.hooksPath "$PWD/hooks"`, `mkdir hooks; echo x > hooks/post-merge`, "hooks/post-merge is protected (core.hookspath names it)"},
		"another case":         {`git config core.hooksPath hooks`, `mkdir Hooks; echo x > Hooks/post-merge`, "Hooks/post-merge is protected (core.hookspath names it)"},
		"linked instead":       {`git config core.hooksPath dev/hooks`, `mkdir mine; echo x > mine/hooks; ln -s mine dev`, "dev is a link that replaces a folder with protected files (core.hookspath names dev/hooks)"},
		"include":              {`git config include.path ../.gitconfig`, `echo x > .gitconfig`, ".gitconfig is protected (include.path names it)"},
		"conditional include":  {`git config includeIf.onbranch:x.path ../conf/git`, `mkdir conf; echo x > conf/git`, "conf/git is protected (includeif.onbranch:x.path names it)"},
		"included from inside": {`git config include.path ../.gitconfig; git config -f .gitconfig commit.template text`, `echo x > text`, "text is protected (commit.template names it)"},
		"attributes":           {`git config core.attributesFile attributes`, `echo x > attributes`, "attributes is protected (core.attributesfile names it)"},
		"program":              {`git config gpg.program ./sign`, `echo x > sign`, "sign is protected (gpg.program names it)"},
		"signing program":      {`git config gpg.ssh.program tools/sign`, `mkdir tools; echo x > tools/sign`, "tools/sign is protected (gpg.ssh.program names it)"},
		"filter":               {`git config filter.f.clean "python3 tools/f.py --file=%f"`, `mkdir tools; echo x > tools/f.py`, "tools/f.py is protected (filter.f.clean names it)"},
		"command in an alias":  {`git config alias.x '!./run'`, `echo x > run`, "run is protected (alias.x names it)"},
		"link in hooks":        {`mkdir -p .git/hooks; ln -s ../../tools/hook .git/hooks/pre-push`, `mkdir tools; echo x > tools/hook`, "tools/hook is protected (a link in .git/hooks names it)"},
		"linked hooks":         {`rm -rf .git/hooks; ln -s ../dev .git/hooks`, `mkdir dev; echo x > dev/pre-push`, "dev/pre-push is protected (a link in .git/hooks names it)"},

		"another checkout": {`git worktree add -q ../other; git config core.hooksPath "$(realpath ../other)/hooks"`, `mkdir hooks; echo x > hooks/x`, "hooks/x is protected (core.hookspath names it)"},
		"behind a link":    {`mkdir real; echo x > real/a; ln -s real hooks; git add -A; git commit -qm links; git config core.hooksPath hooks`, `echo x > real/b`, "real/b is protected (core.hookspath names it)\nreal/b is the target of the protected hooks/b"},

		"up, behind a link":  {up, `mkdir -p real/dev/hooks; echo x > real/dev/hooks/x`, "real/dev/hooks/x is protected (core.hookspath names it)"},
		"a link before that": {up, `mkdir -p e/x e/dev/hooks; echo x > e/dev/hooks/x; rm l; ln -s e/x l`, "l is protected (core.hookspath names it)"},

		"in a folder":          {base + `git config filter.f.smudge 'cd tools && sh sm.sh %f'`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (filter.f.smudge names it)"},
		"beside it there":      {base + `git config filter.f.smudge 'cd tools && sh sm.sh %f'`, `echo x > tools/lib.sh`, "tools/lib.sh is protected (filter.f.smudge names it)"},
		"an alias in a folder": {base + `git config alias.x '!cd tools && sh sm.sh %f'`, `echo x > tools/sm.sh; echo x > tools/lib.sh`, "tools/sm.sh is protected (alias.x names it)"},
		"quotes inside a word": {base + `git config filter.f.smudge './to""ols/s\m.sh'`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (filter.f.smudge names it)"},
		"make in a folder":     {base + `git config filter.f.smudge 'make -s -C tools smudge'`, `echo x > tools/Makefile`, "tools/Makefile is protected (filter.f.smudge names it)"},
		"make":                 {base + `git config filter.f.smudge 'make -s smudge'`, `echo x > Makefile`, "Makefile is protected (filter.f.smudge names it)"},
		"a module":             {`git config filter.f.smudge '"/usr/bin/python3" -m json.tool'`, `mkdir json; echo x > json/tool.py`, "json/tool.py is protected (filter.f.smudge names it)"},
		"a file at the top":    {base + `git config filter.f.smudge 'sh sm.sh'`, `echo x > sm.sh`, "sm.sh is protected (filter.f.smudge names it)"},
		"from the top":         {base + `git config filter.f.smudge '"$(git rev-parse --show-toplevel)/tools/sm.sh" %f'`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (filter.f.smudge names it)"},
		"a path or a command":  {base + `git config core.fsmonitor 'sh tools/sm.sh'`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (core.fsmonitor names it)"},
		"an address":           {base + `git config remote.x.url 'ext::sh tools/sm.sh'`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (remote.x.url names it)"},
		"instead of another":   {base + `git config url.ext::tools/sm.sh.insteadOf foo:`, `echo x > tools/sm.sh`, "tools/sm.sh is protected (url.ext::tools/sm.sh.insteadof names it)"},
		"programs and words":   {base + `git config core.pager sm.sh; git config init.defaultBranch Makefile; git config user.name 'sm.sh Makefile'`, `echo x > sm.sh; echo x > Makefile`, ""},

		"text with slashes": {`git config user.name docs/a; git config alias.d 'log -- docs/a'; git config branch.main.description docs/a; git config remote.x.fetch docs/a`, `mkdir docs; echo x > docs/a`, ""},
		"beside":            {`git config core.hooksPath hooks; git config core.editor "vi -u /etc/x"; git config core.pager less`, `echo x > less; echo x > hooks2; echo x > x`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.sh(p.dir, c.config)
			found := p.findings(c.script + `; git -c core.hooksPath=/dev/null -c core.fsmonitor= add -A; git -c core.hooksPath=/dev/null -c core.fsmonitor= commit -qm x`)
			if got := strings.Join(found, "\n"); got != c.want {
				t.Errorf("found %q, want %q in %s", got, c.want, filepath.Base(p.dir))
			}
		})
	}
}

// Files and folders that the caller names are protected like those of the git configuration, by any name.
func TestFilesNamedByTheCaller(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, before, script, want string }{
		"file":           {"docs/prompt.md", ``, `mkdir docs; echo x > docs/prompt.md`, "docs/prompt.md is protected (the key names it)"},
		"absolute":       {"TOP/docs/prompt.md", ``, `mkdir docs; echo x > docs/prompt.md`, "docs/prompt.md is protected (the key names it)"},
		"in a folder":    {"backlog", ``, `mkdir Backlog; echo x > Backlog/a.md`, "Backlog/a.md is protected (the key names it)"},
		"linked instead": {"my/backlog", ``, `mkdir -p new/backlog; echo x > new/backlog/a.md; ln -s new my`, "my is a link that replaces a folder with protected files (the key names my/backlog)"},
		"behind a link":  {"backlog", `mkdir issues; echo x > issues/a; ln -s issues backlog; git add -A; git commit -qm links`, `echo x > issues/b`, "issues/b is protected (the key names it)\nissues/b is the target of the protected backlog/b"},
		"beside":         {"backlog", ``, `echo x > backlog2; echo x > x`, ""},
		"outside":        {"../backlog", ``, `mkdir backlog; echo x > backlog/x`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.files = []named.File{{Path: strings.Replace(c.file, "TOP", p.dir, 1), Setting: "the key"}}
			p.sh(p.dir, c.before)
			found := p.findings(c.script + `; git add -A; git commit -qm x`)
			if got := strings.Join(found, "\n"); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
