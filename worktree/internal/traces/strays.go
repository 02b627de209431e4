package traces

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/worktree/leftover"
)

// strays lists folders of worktrees without a record. Records are written before the folders are made, and deleted after
// them.
func (s Scope) strays() (all []leftover.Leftover) {
	var seen []string
	for _, kind := range []string{"worktrees", "repos", "given"} {
		for _, name := range entryNames(filepath.Join(s.State, kind)) {
			path := filepath.Join(s.State, kind, name)
			_, err := os.Lstat(s.Record(name))
			if info, errInfo := os.Lstat(path); errInfo != nil || !info.IsDir() || !errors.Is(err, fs.ErrNotExist) || slices.Contains(seen, name) {
				continue
			}
			seen = append(seen, name)
			all = append(all, leftover.Leftover{
				Kind:  leftover.Stray,
				Where: path,
				Key:   KeyOf(name),
				Safe:  true,
				Remove: func(ctx context.Context) (string, error) {
					if _, err := os.Lstat(path); err != nil {
						return "", err
					}
					return s.SetAside(ctx, name)
				},
			})
		}
	}
	return all
}
