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

// Edit replaces one path of a commit.
type Edit struct {
	Path    string
	Entry   Entry  // the new entry; the zero Entry removes the path
	Content []byte // if set, replaces Entry: content of a new regular file
}

// Undo returns the edits that restore a changed file's earlier state.
func (f File) Undo() []Edit {
	if f.OldPath == "" {
		return []Edit{{Path: f.Path, Entry: f.Old}}
	}
	return []Edit{{Path: f.Path}, {Path: f.OldPath, Entry: f.Old}}
}

// Commit makes a commit on top of another one with some paths changed. It writes only objects and no ref. It writes no
// files of the commit, because the commit may be an agent's and its links could lead anywhere.
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
	if _, err := g.Output(ctx, "read-tree", on); err != nil {
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
	tree, err := g.Output(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, strings.TrimSpace(tree), message, on)
}
