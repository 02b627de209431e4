// Package private makes private repositories: the git directories that runs in isolating sandboxes see instead of the
// user's.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Files describes a private repository, without its index and objects.
type Files struct {
	From   git.Location // the user's repository
	Config git.Config
	Spec   record.Spec
	Commit string   // commit of the branch
	Given  []string // object folders to borrow from
}

// Write writes the repository to a folder.
func (f Files) Write(dir string) error {
	for _, sub := range []string{"hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	head := "ref: " + refname.Branch(f.Spec.Branch) + "\n"
	refs := map[string]string{refname.Branch(f.Spec.Branch): f.Commit}
	if f.Spec.Detached {
		head, refs = f.Commit+"\n", map[string]string{}
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

// WriteStandIn writes a folder that stands in for the private repository of a linked worktree. It has copies of the files in
// the worktree's git directory that determine what an import saves.
func WriteStandIn(dir, gitDir string, from git.Location, config git.Config) error {
	if err := os.MkdirAll(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	index, info, err := git.ReadRegular(filepath.Join(gitDir, "index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the worktree's index: %w", err)
	}
	sparse, _, _ := git.ReadRegular(filepath.Join(gitDir, "info", "sparse-checkout"))
	for name, content := range map[string]string{
		"index": string(index), "info/sparse-checkout": string(sparse),
		"info/exclude":    config.File("core.excludesfile", "git/ignore") + Shared(from, "info/exclude"),
		"info/attributes": Attributes(from, config),
	} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if len(index) == 0 {
		return nil
	}
	// Git judges by the index's time which entries it can trust.
	return os.Chtimes(filepath.Join(dir, "index"), info.ModTime(), info.ModTime())
}

// Attributes returns the user's git attributes that are in no commit.
func Attributes(from git.Location, config git.Config) string {
	return config.File("core.attributesfile", "git/attributes") + Shared(from, "info/attributes")
}

// Shared returns the content of a file in the user's git directory, or "".
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

// WriteGitFile writes the .git file of a checkout. It replaces an existing one, which may be an agent's.
func WriteGitFile(checkout, gitDir string) error {
	return disk.Replace(checkout, ".git", []byte("gitdir: "+gitDir+"\n"), 0o600)
}
