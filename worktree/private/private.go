// Package private makes the repository that a run in an isolating sandbox has of its own.
package private

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// Files are all of a private repository but its index and its objects.
type Files struct {
	From   git.Location // the user's repository
	Config git.Config
	Spec   record.Spec
	At     string   // the commit that the branch is at
	Given  []string // object folders to borrow from
}

// Write makes the repository in a folder.
func (f Files) Write(dir string) error {
	for _, sub := range []string{"hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	head := "ref: " + refname.Branch(f.Spec.Branch) + "\n"
	refs := map[string]string{refname.Branch(f.Spec.Branch): f.At}
	if f.Spec.Detached {
		head, refs = f.At+"\n", map[string]string{}
	}
	if base := f.Spec.Base; base.Ref != "" && refs[base.Ref] == "" {
		refs[base.Ref] = base.Commit
	}
	packed := "# pack-refs with: \n"
	for ref, commit := range refs {
		packed += commit + " " + ref + "\n"
	}
	for name, content := range map[string]string{
		"HEAD":                    head,
		"packed-refs":             packed,
		"config":                  f.Config.Private(f.From.Format, f.Spec.Identity.Config(f.Config)...).String(),
		"description":             "private repository of run " + f.Spec.Run + "\n",
		"objects/info/alternates": importer.Alternates(f.Given),
		"info/exclude":            f.Config.File("core.excludesfile", "git/ignore") + Shared(f.From, "info/exclude"),
		"info/attributes":         Attributes(f.From, f.Config),
		"info/sparse-checkout":    Shared(f.From, "info/sparse-checkout"),
		"shallow":                 Shared(f.From, "shallow"),
	} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Attributes are those of the user that no commit has.
func Attributes(from git.Location, config git.Config) string {
	return config.File("core.attributesfile", "git/attributes") + Shared(from, "info/attributes")
}

// Shared is a file of the user's git directory; empty when there is none.
func Shared(from git.Location, name string) string {
	dir := from.Common
	if name == "info/sparse-checkout" { // each worktree has its own
		dir = from.GitDir
	}
	content, err := git.ReadLinked(filepath.Join(dir, name))
	if err != nil || len(content) == 0 {
		return ""
	}
	return strings.TrimSuffix(string(content), "\n") + "\n"
}

// WriteGitFile makes the .git file of a checkout, in the place of whatever is there: it may be an agent's.
func WriteGitFile(checkout, gitDir string) error {
	return disk.Replace(checkout, ".git", []byte("gitdir: "+gitDir+"\n"), 0o600)
}
