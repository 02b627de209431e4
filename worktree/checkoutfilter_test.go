package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/importer"
)

// The user has a filter, and the first attempt commits attributes that apply it to files of its own. The checkout of the
// second attempt runs on the host and must not run the filter. A filter that the base itself asks for is the user's choice,
// and runs.
func TestFilterThatAnAgentHasAskedFor(t *testing.T) { // not parallel: the configuration belongs to the process
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
			_ = os.Remove(marker) // the first checkout, of the base, may have run the filter
			in.sh("export GIT_CONFIG_GLOBAL=/dev/null; " + test.commit + "; echo more > more.txt; git add -A; git commit -qm work")
			f.imported(in.tree)
			f.remove(in.tree)
			if _, err := os.Lstat(marker); err == nil {
				t.Fatal("the import has run the filter")
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

// A filter's program is a file of the repository, and the agent has changed it. No checkout of the agent's commits on the
// host runs the changed program. Files that the agent has not changed are filtered nevertheless.
func TestFilterInTheFilesOfAnAgent(t *testing.T) { // not parallel: the configuration belongs to the process
	for name, again := range map[string]func(*fixture) *Tree{
		"linked":  func(f *fixture) *Tree { return f.add("k", "r2") },
		"private": func(f *fixture) *Tree { return f.private("k", "r2").tree },
		"verify": func(f *fixture) *Tree {
			base := f.base()
			s := Spec{Run: "r2", ParentRun: "r1", Key: "k", Base: base, FilterBase: base.Commit, Private: true, Detached: true}
			s.Base.Commit = f.ref("refs/heads/ralph/k")
			return f.addSpec(s)
		},
		"rebased": func(f *fixture) *Tree {
			tree := f.add("k", "r2")
			old := time.Now().Add(-time.Hour) // otherwise git cannot trust the time and compares contents
			if err := os.Chtimes(filepath.Join(tree.Dir(), "y.f"), old, old); err != nil {
				t.Fatal(err)
			}
			f.sh(tree.Dir(), "git", "update-index", "--refresh")
			f.commit(f.dir, "other.txt", "other\n", "other")
			if _, err := tree.Rebase(t.Context(), f.base()); err != nil {
				t.Fatal(err)
			}
			return tree
		},
		"renewed": func(f *fixture) *Tree {
			in := f.private("k", "r2")
			f.commit(f.dir, "other.txt", "other\n", "other")
			f.imported(in.tree)
			if _, err := in.tree.Rebase(t.Context(), f.base()); err != nil {
				t.Fatal(err)
			}
			f.use(in.tree)
			return in.tree
		},
	} {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(realDir(t), "marker")
			f := newFixture(t)
			f.sh(f.dir, "sh", "-ec", `mkdir tools; printf '#!/bin/sh\necho filtered; cat\n' > tools/sm.sh; chmod +x tools/sm.sh
echo '*.f filter=f' > .gitattributes; echo a > y.f; echo b > z.f; git add -A; git commit -qm base`)
			global := filepath.Join(realDir(t), "gitconfig")
			f.sh("", "git", "config", "-f", global, "filter.f.smudge", "cd tools; ./sm.sh")
			f.sh("", "git", "config", "-f", global, "filter.f.clean", "sed /^filtered$/d")
			t.Setenv("GIT_CONFIG_GLOBAL", global)
			in := f.private("k", "r1")
			if got := f.read(in.tree.Dir(), "z.f"); got != "filtered\nb\n" {
				t.Fatalf("the base is not filtered: %q", got)
			}
			in.sh(fmt.Sprintf(`printf '#!/bin/sh\ntouch %s; cat\n' > tools/sm.sh; echo c > z.f; echo n > zz.f; git add -A; git commit -qm work`, marker))
			f.imported(in.tree)
			f.remove(in.tree)
			tree := again(f)
			f.none(marker)
			for file, want := range map[string]string{"y.f": "filtered\na\n", "z.f": "c\n", "zz.f": "n\n"} {
				if got := f.read(tree.Dir(), file); got != want {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		})
	}
}

// A merge into the user's checkout runs no program that may be in the merged files. Git LFS with its standard configuration
// may run.
func TestMergeBesideFilters(t *testing.T) { // not parallel: configuration and PATH belong to the process
	for name, test := range map[string]struct {
		config map[string]string
		do     string // shell commands on the branch
		lfs    string // folder of the git-lfs program; empty: not installed
		want   error
		file   string // content of z.f after the merge
	}{
		"a filtered file":          {config: map[string]string{"filter.f.smudge": "cd tools; ./sm.sh"}, do: "echo b > z.f", want: ErrFiltered},
		"filtered when added":      {config: map[string]string{"filter.f.clean": "tools/sm.sh"}, do: "echo b > zz.f", want: ErrFiltered},
		"a process":                {config: map[string]string{"filter.f.process": "python3 -m sm"}, do: "echo b > z.f", want: ErrFiltered},
		"other attributes":         {config: map[string]string{"filter.x.smudge": "cat"}, do: "echo '*.txt filter=x' > .gitattributes", want: ErrFiltered},
		"attributes in a folder":   {config: map[string]string{"filter.x.smudge": "cat"}, do: "echo '*.sh filter=x' > tools/.GitAttributes", want: ErrFiltered},
		"beside filtered files":    {config: map[string]string{"filter.f.smudge": "tools/sm.sh", "filter.f.clean": "tools/sm.sh"}, do: "true", file: "a\n"},
		"no filter of that name":   {config: map[string]string{"filter.x.smudge": "tools/sm.sh"}, do: "echo b > z.f", file: "b\n"},
		"Git LFS":                  {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f", "filter.f.clean": "git-lfs clean -- %f", "filter.f.required": "true"}, lfs: "bin", do: "echo b > z.f", file: "lfs\nb\n"},
		"as a command of git":      {config: map[string]string{"filter.f.smudge": "git lfs smudge -- %f"}, lfs: "bin", do: "echo b > z.f", file: "lfs\nb\n"},
		"Git LFS and more":         {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f; tools/sm.sh"}, lfs: "bin", do: "echo b > z.f", want: ErrFiltered},
		"Git LFS with another":     {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f", "filter.f.clean": "tools/sm.sh"}, lfs: "bin", do: "echo b > z.f", want: ErrFiltered},
		"extensions of Git LFS":    {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f", "lfs.extension.x.smudge": "tools/sm.sh"}, lfs: "bin", do: "echo b > z.f", want: ErrFiltered},
		"Git LFS in the checkout":  {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f"}, lfs: "project/tools", do: "echo b > z.f", want: ErrFiltered},
		"Git LFS is a link inside": {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f"}, lfs: "link", do: "echo b > z.f", want: ErrFiltered},
		"no Git LFS":               {config: map[string]string{"filter.f.smudge": "git-lfs smudge -- %f"}, do: "echo b > z.f", want: ErrFiltered},
		"a merge driver":           {config: map[string]string{"merge.m.driver": "cd tools; ./sm.sh"}, do: "echo b > z.f", want: ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			outside := realDir(t)
			marker := filepath.Join(outside, "marker")
			f := fixtureAt(t, filepath.Join(outside, "project"))
			f.sh(f.dir, "sh", "-ec", fmt.Sprintf(`mkdir tools; printf '#!/bin/sh\ncat\n' > tools/sm.sh; chmod +x tools/sm.sh
echo '*.f filter=f merge=m' > .gitattributes; echo a > z.f; git add -A; git commit -qm base
git switch -qc work; printf '#!/bin/sh\ntouch %s; cat\n' > tools/sm.sh; %s; git add -A; git commit -qm work; git switch -q main`, marker, test.do))
			if errors.Is(test.want, ErrConflict) {
				f.commit(f.dir, "z.f", "c\n", "on the base")
				f.write(f.dir, ".git/info/attributes", "*.f merge=m\n")
			}
			f.sh(outside, "sh", "-ec", `mkdir -p bin; printf '#!/bin/sh\ntest $1 = clean && exec sed /^lfs$/d; echo lfs; cat\n' > bin/git-lfs; chmod +x bin/git-lfs
ln -s project/tools link; cp bin/git-lfs project/tools; echo git-lfs > project/.git/info/exclude`)
			if test.lfs != "" {
				t.Setenv("PATH", filepath.Join(outside, test.lfs)+":"+os.Getenv("PATH"))
			}
			global := filepath.Join(outside, "gitconfig")
			for name, value := range test.config {
				f.sh("", "git", "config", "-f", global, name, value)
			}
			t.Setenv("GIT_CONFIG_GLOBAL", global)
			base := f.base()
			_, err := f.repo.Merge(t.Context(), base, f.ref("refs/heads/work"), "m")
			f.none(marker)
			if !errors.Is(err, test.want) || (err == nil) != (f.base() != base) {
				t.Fatalf("the merge said %v, want %v; main was at %s, is at %s", err, test.want, base.Commit, f.base().Commit)
			}
			if got := f.read(f.dir, "z.f"); err == nil && got != test.file {
				t.Errorf("z.f is %q, want %q", got, test.file)
			}
		})
	}
}

// Git's messages about the machine count while it checks out the base. Later, the agent's commits could cause the same
// messages.
func TestMachineLacks(t *testing.T) { // not parallel: the configuration belongs to the process
	for name, private := range map[string]bool{"linked": false, "private": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sh(f.dir, "sh", "-ec", `echo '*.f filter=f' > .gitattributes; echo a > y.f; git add -A; git commit -qm base`)
			in := f.private("k", "r1")
			in.sh("echo more > more.txt; git add -A; git commit -qm work")
			f.imported(in.tree)
			f.remove(in.tree)
			global := filepath.Join(realDir(t), "gitconfig")
			f.sh("", "git", "config", "-f", global, "filter.f.smudge", "echo 'fatal: write error: No space left on device' >&2; false")
			f.sh("", "git", "config", "-f", global, "filter.f.required", "true")
			t.Setenv("GIT_CONFIG_GLOBAL", global)
			for key, want := range map[string]bool{"other": true, "k": false} {
				s := f.spec(key, "r2")
				s.Private = private
				if _, err := f.repo.Add(t.Context(), s); err == nil || importer.IsOutOfResources(err) != want {
					t.Errorf("%s: %v; the machine lacks something: %v, want %v", key, err, !want, want)
				}
			}
		})
	}
}
