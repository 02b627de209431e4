package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Location identifies a repository and the user's current checkout of it.
type Location struct {
	Top    string // top folder of the checkout
	GitDir string // git directory of the checkout; differs from Common in a linked worktree of the user's
	Common string // common git directory with links resolved; identifies the repository
	Format string // "sha1" or "sha256"
}

// Locate finds the repository that contains dir, a folder of the user's. Only here, git may discover a repository.
func Locate(ctx context.Context, dir string) (Location, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Location{}, fmt.Errorf("repository: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return Location{}, fmt.Errorf("repository: %w", err)
	} else if !info.IsDir() {
		return Location{}, fmt.Errorf("repository: %s is not a folder", dir)
	}
	out, err := New(dir).Output(ctx, "rev-parse", "--is-bare-repository", "--is-inside-work-tree",
		"--show-object-format", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
	// Even if it fails, git prints the first lines, which identify the kind of place.
	lines := strings.Split(out, "\n")
	switch {
	case len(lines) >= 2 && lines[0] == "true":
		return Location{}, fmt.Errorf("%s is a bare repository; ralph needs a checkout, make one with: git clone %s", dir, Quote(dir))
	case len(lines) >= 2 && lines[1] == "false":
		return Location{}, fmt.Errorf("%s is inside a git directory, not a checkout; use its parent: %s", dir, Quote(filepath.Dir(dir)))
	case err != nil:
		return Location{}, explainNoRepository(dir, err)
	case len(lines) != 6:
		return Location{}, fmt.Errorf("%s: a path with a line break cannot be used", Printable(dir))
	}
	p := Location{Format: lines[2], GitDir: lines[3], Common: lines[4], Top: lines[5]}
	if p.Common, err = filepath.EvalSymlinks(p.Common); err != nil {
		return Location{}, fmt.Errorf("repository: %w", err)
	}
	if p.GitDir, err = filepath.EvalSymlinks(p.GitDir); err != nil {
		return Location{}, fmt.Errorf("repository: %w", err)
	}
	return p, nil
}

// Digest returns a short name of 10 characters for texts of any length.
func Digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// explainNoRepository finds out why git does not work in dir.
func explainNoRepository(dir string, err error) error {
	if !Failed(err) {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, statErr := os.Lstat(filepath.Join(at, ".git"))
		if statErr == nil {
			owner, ok := info.Sys().(*syscall.Stat_t)
			if ok && int(owner.Uid) != os.Geteuid() {
				return fmt.Errorf("%s belongs to another user; to trust it: git config --global --add safe.directory %s", at, Quote(at))
			}
			return fmt.Errorf("repository %s: %w", at, err)
		}
		if at == filepath.Dir(at) {
			return fmt.Errorf("%s is %w; make one with: git init %s", dir, ErrNoRepository, Quote(dir))
		}
	}
}
