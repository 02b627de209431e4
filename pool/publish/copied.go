package publish

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// AddCopied adds the secrets in the files that worktrees get from the user's checkout. A value that a file of the commit contains, such
// as the password of a test database, is no secret.
func (p Policy) AddCopied(ctx context.Context, commit string) {
	if len(p.Copied) > 0 {
		p.Secrets.Add(p.secret(ctx, redact.InFiles(p.Repo.Dir(), p.Copied), commit)...)
	}
}

// AddMade is AddCopied for values that the user's host commands have made. Each run may get other ones.
func (p Policy) AddMade(ctx context.Context, values []string, commit string) {
	p.Secrets.AddShortLived(p.secret(ctx, values, commit)...)
}

// secret returns the values that are known secrets, or that no file of the commit contains. Git reads all files for that, so it is only
// asked about values of which neither is known.
func (p Policy) secret(ctx context.Context, values []string, commit string) []string {
	unknown := p.Secrets.Unknown(values)
	if len(unknown) == 0 || commit == "" {
		return values
	}
	public := p.Secrets.Public(commit)
	if slices.ContainsFunc(unknown, func(v string) bool { return !slices.Contains(public, v) }) {
		found, err := p.Repo.Git().Run(ctx, strings.Join(unknown, "\n"), "grep", "-h", "-o", "-F", "-f", "-", commit, "--")
		if ctx.Err() != nil {
			return nil // they were added when the run began
		}
		if err != nil { // git also fails if it finds nothing
			return values
		}
		public = slices.DeleteFunc(slices.Clone(unknown), func(v string) bool { return !strings.Contains(found, v) })
		p.Secrets.AddPublic(commit, public)
	}
	return slices.DeleteFunc(values, func(v string) bool { return slices.Contains(unknown, v) && slices.Contains(public, v) })
}

// checkCopies finds files in the commits that git tracks neither on the bases nor in the user's checkout, and that the user has had
// copied from there into the worktree. They are the user's own, such as files with passwords.
func (p Policy) checkCopies(ctx context.Context, bases, changed []string, found *findings) error {
	var copies []string
	for _, file := range changed {
		below := func(folder string) bool {
			folder = folded(path.Clean(filepath.ToSlash(folder)))
			return folder == "." || strings.HasPrefix(folded(file)+"/", folder+"/")
		}
		if slices.ContainsFunc(p.Copied, below) {
			if info, err := os.Lstat(filepath.Join(p.Repo.Dir(), filepath.FromSlash(file))); err == nil && !info.IsDir() {
				copies = append(copies, file)
			}
		}
	}
	for _, commit := range append(slices.Clone(bases), "HEAD") {
		if len(copies) == 0 {
			return nil
		}
		tracked, err := diff.List(ctx, p.Repo.Git().WithDir(p.Repo.Dir()), commit)
		if err != nil && (commit != "HEAD" || !git.Failed(err)) { // HEAD may have no commit
			return err
		}
		copies = slices.DeleteFunc(copies, func(file string) bool { return tracked[file].Exists() })
	}
	for _, file := range copies {
		found.note("%s was copied from a file of the checkout that git does not track", file)
	}
	return nil
}
