// Package link makes linked worktrees of a repository, without their files. Its caller is package worktree, which makes one
// at a time.
package link

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/worktree/git"
)

// maxTries is how often git is started before its error counts; all pauses together take half a second.
const maxTries = 9

// Link describes a linked worktree.
type Link struct {
	Dir    string // folder of the files
	GitDir string // git directory, below the repository's worktrees folder; git may choose another name
	Head   string // full name of the branch, or a commit
	Reason string // reason of the lock
}

// Make makes the worktree. main says that the runner is pinned to the main checkout. After an error, parts of the worktree
// may exist.
func Make(ctx context.Context, g git.Runner, main bool, l Link) error {
	if main {
		config, err := g.Config(ctx)
		if err != nil {
			return err
		}
		done, err := l.writeEntry(g, config)
		if errors.Is(err, fs.ErrNotExist) { // the user has pruned the half-written entry
			err = errors.Join(os.RemoveAll(l.Dir), os.RemoveAll(l.GitDir))
		}
		if done || err != nil {
			return err
		}
	}
	args := []string{"worktree", "add", "--no-checkout", "--lock", "--reason", l.Reason}
	if branch, ok := strings.CutPrefix(l.Head, git.Heads); ok {
		args = append(args, "--", l.Dir, branch)
	} else {
		args = append(args, "--detach", "--", l.Dir, l.Head)
	}
	// Git reads all its worktree entries here. It fails at an incomplete one, for example during a prune of the user's.
	for try := 1; ; try++ {
		_, err := g.Output(ctx, args...)
		if !git.Failed(err) || try == maxTries {
			return err
		}
		if err := errors.Join(os.RemoveAll(l.Dir), os.RemoveAll(l.GitDir)); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, time.Millisecond<<try); err != nil {
			return err
		}
	}
}

// writeEntry writes git's record of the worktree with the same files and in the same order as git, without git's two
// processes. done is false, and nothing was made, if git would write more than these files, or if the folders are in use.
func (l Link) writeEntry(g git.Runner, config git.Config) (done bool, err error) {
	plain := g.PlainRefs() && filepath.Dir(l.GitDir) == filepath.Join(g.Common(), "worktrees") && config.Get("core.sharedrepository") == ""
	for _, more := range []string{"config.worktree", "info/sparse-checkout"} { // git would copy these
		_, err := os.Lstat(filepath.Join(g.Common(), more))
		plain = plain && errors.Is(err, fs.ErrNotExist)
	}
	if !plain || hasOperation(g.Common()) || strings.ContainsAny(l.Dir+l.GitDir+l.Head+l.Reason, "\n\x00") {
		return false, nil
	}
	for _, parent := range []string{filepath.Dir(l.Dir), filepath.Dir(l.GitDir)} {
		if err := os.MkdirAll(parent, 0o777); err != nil { //nolint:gosec // as git makes them
			return false, err
		}
	}
	if err := os.Mkdir(l.GitDir, 0o777); err != nil { //nolint:gosec // as git makes them
		return false, ignoreExist(err)
	}
	// Locked first, so that no prune removes the rest.
	if err := git.WriteNew(filepath.Join(l.GitDir, "locked"), []byte(l.Reason+"\n"), 0o666, false); err != nil {
		return false, err
	}
	if err := os.Mkdir(l.Dir, 0o777); err != nil { //nolint:gosec // as git makes them
		return false, errors.Join(ignoreExist(err), os.RemoveAll(l.GitDir))
	}
	head := l.Head
	if !git.IsObject(head) {
		head = "ref: " + head
	}
	file := filepath.Join(git.Resolved(l.Dir), ".git")
	for _, f := range [][2]string{
		{filepath.Join(l.GitDir, "gitdir"), file},
		{file, "gitdir: " + l.GitDir},
		{filepath.Join(l.GitDir, "HEAD"), head},
		{filepath.Join(l.GitDir, "commondir"), "../.."},
	} {
		if err := git.WriteNew(f[0], []byte(f[1]+"\n"), 0o666, false); err != nil {
			return false, err
		}
	}
	return true, nil
}

// hasOperation reports whether a checkout has a rebase or bisection, perhaps of the branch. Then git has to check that.
func hasOperation(common string) bool {
	dirs := []string{common}
	entries, _ := os.ReadDir(filepath.Join(common, "worktrees")) // most repositories have none
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(common, "worktrees", e.Name()))
	}
	for _, dir := range dirs {
		for _, name := range []string{"rebase-merge", "rebase-apply", "BISECT_START"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
	}
	return false
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
