package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A byte that makes git take source code for data hides it from nobody: it is shown and counted, and a person has to look.
func TestSourceWithANulByte(t *testing.T) {
	t.Parallel()
	for name, gate := range map[string]string{"gate": "--gate=true", "no gate": "--parallel=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".gitignore", ".ralph\n")
			m.write(t, "calc.js", "one\ntwo\n")
			m.write(t, "old.js", "one\x00\n")
			m.write(t, "main.tf", "one\n")
			m.commit(t)
			m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
			agent := m.program(t, "agent", `cat >/dev/null; printf 'one\n/*\0*/ evil()\nthree\n' >calc.js; printf '\211P\0N\0G\377\1' >a.png; printf 'two\0\n' >main.tf; echo x >>old.js
git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'
`)
			own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
			got := m.run(t, nil, append(own, "work", gate, "--skip-permissions", "--publish=merge", "--agent-command="+agent+"/agent")...)
			if got.status != exit.OK || strings.Contains(got.stdout+got.stderr, "merged into") {
				t.Fatalf("%+v", got)
			}
			const is = ": is binary, so most programs do not show its text"
			const why = "the checks themselves have changed: calc.js" + is + ", main.tf" + is
			if got := m.run(t, nil, "show", "a"); !strings.Contains(got.stdout, why) || strings.Contains(got.stdout, "old.js: is") || strings.Contains(got.stdout, "a.png: is") {
				t.Errorf("%+v", got)
			}
			if got := m.run(t, nil, "show", "a", "--json"); !strings.Contains(got.stdout, `{"path":"calc.js","insertions":2,"deletions":1}`) &&
				!strings.Contains(strings.Join(strings.Fields(got.stdout), ""), `{"path":"calc.js","insertions":2,"deletions":1}`) {
				t.Errorf("%+v", got)
			}
			if got := m.run(t, nil, "diff", "a"); !strings.Contains(got.stdout, "+/*\x00*/ evil()") || !strings.Contains(got.stderr, "calc.js, main.tf, old.js;") {
				t.Errorf("%+v", got)
			}
			if got := m.run(t, nil, "diff", "a", "--stat"); !strings.Contains(got.stderr, "calc.js") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A submodule's commit is named beside the diff, and before a person merges it, even if settings leave it out of git's.
func TestDiffNamesSubmodules(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = all\n")
	m.commit(t)
	m.git(t, "config", "diff.ignoreSubmodules", "all")
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	agent := m.program(t, "agent", `cat >/dev/null; echo x >x; git add x; git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),sub"
git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'
`)
	got := m.run(t, nil, "--sandbox=none", "--commit-author=A <a@b.c>", "work", "--gate=true", "--skip-permissions", "--publish=merge", "--agent-command="+agent+"/agent")
	if got.status != exit.OK || strings.Contains(got.stdout+got.stderr, "merged into") {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"diff", "a"}, {"diff", "a", "--stat"}} {
		got := m.run(t, nil, args...)
		if !strings.Contains(got.stderr, "submodules have other commits, whose changes are not in the diff: sub\n") || !strings.Contains(got.stdout, "sub") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	const moves = "a: the merge moves submodules to other commits, whose changes no diff shows: sub\n"
	if got := m.run(t, nil, "merge", "--all"); strings.Contains(got.stderr, moves) || !strings.Contains(got.stderr, "a is not merged: the checks themselves have changed: sub: is a commit") {
		t.Errorf("%+v", got)
	}
	got = m.run(t, nil, "--sandbox=none", "--commit-author=A <a@b.c>", "merge", "a", "--gate=true")
	if got.status != exit.OK || !strings.Contains(got.stderr, moves) || !strings.Contains(got.stdout, "merged into") {
		t.Errorf("%+v", got)
	}
}
