package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/named"
)

// MaxFindings is the number of findings that are listed; the others are counted.
const MaxFindings = 20

// Policy checks an agent's commits before they are published. It is safe for concurrent use.
type Policy struct {
	Repo      *worktree.Repo
	Protected []string     // see ProtectedPaths; empty: no protected paths
	Files     []named.File // protected, too, unless Protected is empty; a relative path begins at the top of the checkout
	Copied    []string     // paths that worktrees get from the user's checkout: commits may contain no copy, and no secret in one
	Secrets   *redact.Secrets
}

// Check checks every commit of base..tip before any of it leaves the repository, and returns the violations. It does not
// blame the agent for commits that the base got since the run began, if the branch contains them.
func (p Policy) Check(ctx context.Context, tree *worktree.Tree, base, tip string) (findings []string, err error) {
	findings, err = p.CheckFrom(ctx, []string{base}, tip)
	if err != nil || len(findings) == 0 || tree == nil {
		return findings, err
	}
	now, err := tree.CurrentBase(ctx)
	if err != nil {
		return nil, err
	}
	if now == "" || now == base {
		return findings, nil
	}
	return p.CheckFrom(ctx, []string{base, now}, tip)
}

// CheckFrom checks every commit of tip that is in none of the bases.
func (p Policy) CheckFrom(ctx context.Context, bases []string, tip string) ([]string, error) {
	var found findings
	p.AddCopied(ctx, bases[0])
	scan := p.Secrets.Finder().Scan(func(file string) { found.note("%s adds a secret", file) })
	changes, err := p.Repo.Changes(ctx, bases, tip, scan.Line)
	if err != nil {
		return tooLargeFinding(err)
	}
	scan.End()
	var files []named.File
	if len(p.Protected) > 0 && len(changes.Paths) > 0 {
		if files, err = named.Files(ctx, p.Repo.Git(), p.Repo.Dir(), p.Files...); err != nil {
			return nil, err
		}
	}
	aliases, err := p.aliases(ctx, bases, changes.Paths)
	if err != nil {
		return nil, err
	}
	if err := p.checkPaths(ctx, changes, newGuard(p.Protected, files), aliases, &found); err != nil {
		return nil, err
	}
	if err := p.checkCopies(ctx, bases, changes.Paths, &found); err != nil {
		return nil, err
	}
	return found.list(), nil
}

// checkPaths checks the paths and links that the commits change. It stops early: an agent can make millions of paths from few
// objects.
func (p Policy) checkPaths(ctx context.Context, changes worktree.Changes, g *guard, aliases aliases, found *findings) error {
	done := func() bool { return ctx.Err() != nil || len(found.texts) > findingsLimit }
	for _, file := range changes.Paths {
		if done() {
			break
		}
		if pattern := g.protects(file); pattern != "" {
			found.note("%s is protected (%s)", file, pattern)
		}
		_, link := slices.BinarySearch(changes.Links, file)
		if alias := aliases.protected(g, name{file, link}); alias != "" {
			found.note("%s is the target of the protected %s", file, alias)
		}
		if p.Secrets.In(file) {
			found.note("a file's name contains a secret")
		}
	}
	for _, link := range changes.Links {
		if done() {
			break
		}
		if pattern := g.protectsBelow(link); pattern != "" {
			found.note("%s is a link that replaces a folder with protected files (%s)", link, pattern)
		}
	}
	for commit, object := range changes.Objects {
		if done() {
			break
		}
		if p.Secrets.In(object) {
			found.note("the message, the author or another header of commit %.12s contains a secret", commit)
		}
	}
	return context.Cause(ctx)
}

// findingsLimit is the number of findings at which a check stops.
const findingsLimit = 1000

// findings is a set of findings.
type findings struct{ texts map[string]bool }

func (f *findings) note(format string, args ...any) {
	if len(f.texts) > findingsLimit {
		return
	}
	if f.texts == nil {
		f.texts = map[string]bool{}
	}
	f.texts[fmt.Sprintf(format, args...)] = true
}

// list returns the first findings and the number of the others.
func (f *findings) list() []string {
	all := slices.Sorted(maps.Keys(f.texts))
	more := len(all) - MaxFindings
	switch {
	case len(all) > findingsLimit:
		return append(all[:MaxFindings], fmt.Sprintf("and at least %d more", more))
	case more > 0:
		return append(all[:MaxFindings], fmt.Sprintf("and %d more", more))
	}
	return all
}

// tooLargeFinding returns the finding that an agent's commits are too large to be checked. It returns other errors unchanged.
func tooLargeFinding(err error) ([]string, error) {
	if errors.Is(err, diff.ErrTooMuch) {
		return []string{fmt.Sprintf("what the commits change cannot be checked for secrets and protected paths: %v", err)}, nil
	}
	return nil, err
}
