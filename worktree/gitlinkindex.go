package worktree

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// indexLimit is how large an index is read here; of a larger one git itself is asked, which looks at what has changed
// only.
const indexLimit = 1 << 20

// Gitlinks is Repo.Gitlinks for what was just handed back. Where a small index shows that there is no nested repository
// at all, no process is started for it.
func (t *Tree) Gitlinks(ctx context.Context, h HandBack) ([]string, error) {
	if h.WIP == "" && t.indexHasNone() {
		return nil, nil
	}
	return t.repo.Gitlinks(ctx, t.Spec().Base.Commit, h.Tip)
}

// indexHasNone reports that the worktree's index, which is that of the tip when nothing is uncommitted, holds no
// gitlink. What it cannot read, and what an agent may have made of a private repository, it does not answer.
func (t *Tree) indexHasNone() bool {
	rec := t.record()
	if rec.Private {
		return false
	}
	path := filepath.Join(rec.GitDir, "index")
	info, err := os.Stat(path)
	if err != nil || info.Size() > indexLimit {
		return false
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var idx index.Index
	if err := index.NewDecoder(bytes.NewReader(content)).Decode(&idx); err != nil {
		return false
	}
	for _, e := range idx.Entries {
		if e.Mode == filemode.Submodule {
			return false
		}
	}
	return true
}
