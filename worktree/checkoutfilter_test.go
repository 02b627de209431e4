package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFilterThatAnAgentHasAskedFor: the user has a filter, and the first attempt commits attributes that put it on files
// of its own making. The checkout of the second attempt, which is on the host, must not run it. One that the base asks
// for itself is the user's choice, and runs.
func TestFilterThatAnAgentHasAskedFor(t *testing.T) { // not parallel: the configuration is the process's
	tests := map[string]struct {
		base, commit string // shell commands
		runs         bool
	}{
		"attributes of the agent":       {"true", `echo '*.txt filter=x' > .gitattributes`, false},
		"in a folder":                   {"true", `mkdir -p d/e; echo '*.txt filter=x' > d/e/.gitattributes; echo x > d/e/f.txt`, false},
		"by a name of other case":       {"true", `mkdir -p d; echo '*.txt filter=x' > d/.GitAttributes; echo x > d/f.txt`, false},
		"attributes that are changed":   {`echo '*.bin filter=x' > .gitattributes`, `echo '*.txt filter=x' >> .gitattributes`, false},
		"where its files come from":     {`echo '*.txt filter=x' > .gitattributes`, `printf '[lfs]\n\turl = x\n' > .lfsconfig`, false},
		"attributes of the base":        {`echo '*.txt filter=x' > .gitattributes`, "true", true},
		"attributes that are no longer": {`echo '*.txt filter=x' > .gitattributes`, `git rm -q .gitattributes`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(realDir(t), "marker")
			global := filepath.Join(realDir(t), "gitconfig")
			if err := os.WriteFile(global, []byte("[filter \"x\"]\n\tsmudge = touch '"+marker+"' && cat\n\tclean = cat\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f := newFixture(t)
			f.sh(f.dir, "sh", "-ec", test.base+"; git add -A; git commit -q --allow-empty -m base")
			t.Setenv("GIT_CONFIG_GLOBAL", global)
			in := f.private("k", "r1")
			_ = os.Remove(marker) // the first checkout is of the base
			in.sh("export GIT_CONFIG_GLOBAL=/dev/null; " + test.commit + "; echo more > more.txt; git add -A; git commit -qm work")
			f.handBack(in.tree)
			f.remove(in.tree)
			if _, err := os.Lstat(marker); err == nil {
				t.Fatal("the hand-back has run the filter")
			}
			again := f.add("k", "r2")
			if got := f.read(again.Dir(), "more.txt"); got != "more\n" {
				t.Errorf("the second attempt has %q", got)
			}
			if _, err := os.Lstat(marker); (err == nil) != test.runs {
				t.Errorf("the filter has run: %v, want %v", err == nil, test.runs)
			}
		})
	}
}
