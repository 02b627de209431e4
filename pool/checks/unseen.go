package checks

import (
	"context"
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

const tooLarge = "the change is too large to examine"

// Unseen has the changed paths whose new content git's diff does not show.
type Unseen struct {
	Submodules []string // at another commit than before
	Texts      []string // texts and programs that git takes for data
}

// FindUnseen finds them among changes. If these are too many to be read, it returns the submodules, and wraps [diff.ErrTooMuch].
func FindUnseen(ctx context.Context, g git.Runner, changes []diff.File) (u Unseen, err error) {
	var files []diff.File
	var entries []diff.Entry
	for _, f := range changes {
		if f.New.Mode == diff.Gitlink {
			u.Submodules = append(u.Submodules, f.Path)
		}
		if f.New != f.Old && strings.HasPrefix(f.New.Mode, "100") {
			files, entries = append(files, f), append(entries, f.Old, f.New)
		}
	}
	texts, err := diff.Texts(ctx, g, entries, diff.Limit{Each: 8 << 10, All: textLimit().All})
	if err != nil {
		return u, err
	}
	for _, f := range files {
		if suite.Hides(f.Path, f.New.Mode == "100755", texts[f.Old.ID], texts[f.New.ID]) {
			u.Texts = append(u.Texts, f.Path)
		}
	}
	return u, nil
}

// addUnseen records what no reader of a diff sees. With a gate, compareNames records changes that are too large.
func addUnseen(ctx context.Context, g git.Runner, changes []diff.File, gated bool, out *journal.Watch) error {
	if err := addLinks(ctx, g, changes, out); err != nil {
		return err
	}
	u, err := FindUnseen(ctx, g, changes)
	add := func(text string) {
		if len(out.Findings) < maxListed {
			out.Findings = append(out.Findings, text)
		}
	}
	for _, path := range u.Submodules {
		add(path + ": is a commit of another repository, whose changes no diff shows")
	}
	for _, path := range u.Texts {
		add(path + ": is binary, so most programs do not show its text")
	}
	if !errors.Is(err, diff.ErrTooMuch) {
		return err
	}
	if !gated {
		add(tooLarge)
	}
	return nil
}
