package checks

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// findReplaced fills in what the changes do to the libraries that tests load on the base.
func findReplaced(ctx context.Context, g git.Runner, base string, changes []suite.Change, gate []string) error {
	if !suite.MayReplace(changes) {
		return nil
	}
	entries, err := diff.List(ctx, g, base)
	if err != nil {
		return err
	}
	files := slices.Sorted(maps.Keys(entries))
	imports := suite.NewImports(files, changes, gate)
	files = slices.DeleteFunc(files, func(file string) bool { return !imports.Reads(file) })
	if err := addTexts(ctx, g, entries, files, imports.Add); err != nil {
		return err
	}
	imports.Find(changes)
	return nil
}

// addTexts calls add with the text of each file. It holds only a part of them at a time.
func addTexts(ctx context.Context, g git.Runner, entries map[string]diff.Entry, files []string, add func(file string, text []byte)) error {
	const most = 2000
	if len(files) == 0 {
		return ctx.Err()
	}
	part := files[:min(most, len(files))]
	list := make([]diff.Entry, 0, len(part))
	for _, file := range part {
		list = append(list, entries[file])
	}
	texts, err := diff.Texts(ctx, g, list, textLimit())
	if errors.Is(err, diff.ErrTooMuch) && len(part) > 1 {
		half := len(part) / 2
		if err := addTexts(ctx, g, entries, part[:half], add); err != nil {
			return err
		}
		return addTexts(ctx, g, entries, files[half:], add)
	}
	if err != nil {
		return err
	}
	for i, file := range part {
		add(file, texts[list[i].ID])
	}
	return addTexts(ctx, g, entries, files[len(part):], add)
}
