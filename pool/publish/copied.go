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
)

// AddCopied adds the secrets in the files that worktrees get from the user's checkout; see AddSecrets.
func (p Policy) AddCopied(ctx context.Context, commit string) {
	if len(p.Copied) > 0 {
		p.AddSecrets(ctx, redact.InFiles(p.Repo.Dir(), p.Copied), commit)
	}
}

// AddSecrets adds the values that no file of the commit contains. A password of a test database that the repository has is no secret.
func (p Policy) AddSecrets(ctx context.Context, values []string, commit string) {
	if len(values) == 0 {
		return
	}
	if commit != "" {
		known, err := p.Repo.Git().Run(ctx, strings.Join(values, "\n"), "grep", "-h", "-o", "-F", "-f", "-", commit, "--")
		if ctx.Err() != nil {
			return // they were added when the run began
		}
		if err == nil { // git also fails if it finds nothing
			values = slices.DeleteFunc(values, func(v string) bool { return strings.Contains(known, v) })
		}
	}
	p.Secrets.Add(values...)
}

// checkCopies finds files in the commits that git does not track on the bases, and that the user has had copied into the worktree. They
// are the user's own, such as files with passwords.
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
	for _, base := range bases {
		if len(copies) == 0 {
			return nil
		}
		tracked, err := diff.List(ctx, p.Repo.Git(), base)
		if err != nil {
			return err
		}
		copies = slices.DeleteFunc(copies, func(file string) bool { return tracked[file].Exists() })
	}
	for _, file := range copies {
		found.note("%s was copied from a file of the checkout that git does not track", file)
	}
	return nil
}
