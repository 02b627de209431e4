package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/named"
)

// MaxFindings is how many findings are named; the rest are counted.
const MaxFindings = 20

// Policy decides what an agent's commits may bring. It is safe for concurrent use.
type Policy struct {
	Repo      *worktree.Repo
	Protected []string // see ProtectedPaths; empty protects nothing
	Secrets   *redact.Secrets

	named []named.File // what the user's git configuration names; see CheckFrom
}

// Check looks at every commit of base..tip before anything of it leaves the repository, and returns what it may not
// bring. What the base got since the run began is not the agent's to answer for, where its branch contains that.
func (p Policy) Check(ctx context.Context, tree *worktree.Tree, base, tip string) (findings []string, err error) {
	findings, err = p.CheckFrom(ctx, []string{base}, tip)
	if err != nil || len(findings) == 0 || tree == nil {
		return findings, err
	}
	now, err := tree.BaseNow(ctx)
	if err != nil {
		return nil, err
	}
	if now == "" || now == base {
		return findings, nil
	}
	return p.CheckFrom(ctx, []string{base, now}, tip)
}

// CheckFrom looks at every commit of tip that is in none of the bases.
func (p Policy) CheckFrom(ctx context.Context, bases []string, tip string) ([]string, error) {
	var found []string
	note := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	scan := p.Secrets.Finder().Scan(func(file string) { note("%s brings a secret", file) })
	changes, err := p.Repo.Changes(ctx, bases, tip, scan.Line)
	if err != nil {
		return unread(err)
	}
	scan.End()
	if len(p.Protected) > 0 && len(changes.Paths) > 0 {
		if p.named, err = named.Files(ctx, p.Repo.Git(), p.Repo.Dir()); err != nil {
			return nil, err
		}
	}
	aliases, err := p.aliases(ctx, bases, changes.Paths)
	if err != nil {
		return nil, err
	}
	for _, file := range changes.Paths {
		if pattern := p.protects(file); pattern != "" {
			note("%s is protected (%s)", file, pattern)
		}
		if alias := aliases.protected(p, name{file, slices.Contains(changes.Links, file)}); alias != "" {
			note("%s is what the protected %s leads to", file, alias)
		}
		if p.Secrets.In(file) {
			note("a file's name carries a secret")
		}
	}
	for _, link := range changes.Links {
		if pattern := p.protectsBelow(link); pattern != "" {
			note("%s is a link in place of a folder with protected files (%s)", link, pattern)
		}
	}
	for commit, object := range changes.Objects {
		if p.Secrets.In(object) {
			note("the message, the author or another header of commit %.12s carries a secret", commit)
		}
	}
	slices.Sort(found)
	if more := len(found) - MaxFindings; more > 0 {
		found = append(found[:MaxFindings], fmt.Sprintf("and %d more", more))
	}
	return found, nil
}

// unread is the finding where an agent's commits are too much to be read. Any other error is not theirs.
func unread(err error) ([]string, error) {
	if errors.Is(err, diff.ErrTooMuch) {
		return []string{fmt.Sprintf("what the commits change cannot be checked for secrets and protected paths: %v", err)}, nil
	}
	return nil, err
}
