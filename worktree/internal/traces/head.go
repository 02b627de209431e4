package traces

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/worktree/git"
)

// FindHead finds the commit of a worktree's HEAD if git status cannot: by name, or else as the newest commit in HEAD's log,
// which remains if an agent deletes its current branch.
func FindHead(ctx context.Context, g git.Runner, gitDir string) (string, error) {
	head, err := g.Output(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if !git.Failed(err) {
		return head, err
	}
	content, _, err := git.ReadRegular(filepath.Join(gitDir, "logs", "HEAD"))
	if err != nil {
		return "", nil //nolint:nilerr // no log, no answer
	}
	lines := bytes.Split(content, []byte("\n"))
	for tried := 0; len(lines) > 0 && tried < 10; lines = lines[:len(lines)-1] {
		fields := bytes.SplitN(lines[len(lines)-1], []byte(" "), 3)
		if len(fields) < 3 || !git.IsObject(string(fields[1])) || bytes.Trim(fields[1], "0") == nil {
			continue
		}
		tried++
		ok, err := g.Test(ctx, "cat-file", "-e", string(fields[1])+"^{commit}")
		if err != nil && !git.Failed(err) {
			return "", err
		}
		if ok {
			return string(fields[1]), nil
		}
	}
	return "", nil
}

// IsLost reports whether the folder of a worktree entry is gone, or belongs to the repository that this one was copied
// from.
func IsLost(folder, entry string) bool {
	if _, err := os.Lstat(folder); err != nil {
		return true
	}
	link, _ := git.LinkedGitDir(folder)
	theirs, err := os.Stat(link)
	ours, errOurs := os.Stat(entry)
	return err == nil && errOurs == nil && !os.SameFile(theirs, ours)
}
