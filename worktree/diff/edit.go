package diff

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Edit is one path of a commit that is put together.
type Edit struct {
	Path    string
	Entry   Entry  // what is there then; the zero Entry removes the path
	Content []byte // in the place of Entry: a new regular file
}

// Undo are the edits that bring a changed file back to what it was.
func (f File) Undo() []Edit {
	if f.OldPath == "" {
		return []Edit{{Path: f.Path, Entry: f.Old}}
	}
	return []Edit{{Path: f.Path}, {Path: f.OldPath, Entry: f.Old}}
}

// Commit makes a commit on top of another with some paths changed. No ref names it, and no file is written but objects: the
// commit may be an agent's, whose links would lead anywhere.
func Commit(ctx context.Context, g git.Runner, on string, edits []Edit, message string) (string, error) {
	dir, remove, err := tempdir.Held("ralph-index-")
	if err != nil {
		return "", fmt.Errorf("make a commit: %w", err)
	}
	defer func() { _ = remove() }()
	g, err = g.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	g = g.With("GIT_INDEX_FILE=" + filepath.Join(dir, "index"))
	commit, err := commitEdits(ctx, g, on, edits, message)
	if err != nil {
		return "", fmt.Errorf("make a commit: %w", err)
	}
	return commit, nil
}

func commitEdits(ctx context.Context, g git.Runner, on string, edits []Edit, message string) (string, error) {
	if _, err := g.Out(ctx, "read-tree", on); err != nil {
		return "", err
	}
	var info strings.Builder
	for _, e := range edits {
		if e.Content != nil {
			var id bytes.Buffer
			if err := g.Pipe(ctx, bytes.NewReader(e.Content), &id, "hash-object", "-w", "--stdin"); err != nil {
				return "", err
			}
			e.Entry = Entry{Mode: "100644", ID: strings.TrimSpace(id.String())}
		}
		if !e.Entry.Exists() {
			e.Entry = Entry{Mode: "0", ID: strings.Repeat("0", len(on))}
		}
		fmt.Fprintf(&info, "%s %s\t%s\x00", e.Entry.Mode, e.Entry.ID, e.Path)
	}
	if _, err := g.Run(ctx, info.String(), "update-index", "-z", "--replace", "--index-info"); err != nil {
		return "", err
	}
	tree, err := g.Out(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, strings.TrimSpace(tree), message, on)
}
