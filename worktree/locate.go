package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is where a repository and the checkout that the user stands in are.
type place struct {
	top    string // of the checkout
	gitDir string // of the checkout; differs from common in a linked worktree of the user's
	common string // canonical; the repository's identity
	format string // "sha1" or "sha256"
}

// Locate finds the repository that dir is in, before anything is opened: the top of the checkout, and an id that is
// readable, path-safe and unique on this host. A worktree of a repository has the repository's id.
func Locate(ctx context.Context, dir string) (top, id string, err error) {
	p, err := locate(ctx, dir)
	if err != nil {
		return "", "", err
	}
	return p.top, p.id(), nil
}

// locate asks git, the only time that git discovers anything; dir is a folder of the user's.
func locate(ctx context.Context, dir string) (place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("repository: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return place{}, fmt.Errorf("repository: %w", err)
	} else if !info.IsDir() {
		return place{}, fmt.Errorf("repository: %s is not a folder", dir)
	}
	out, err := newGit(dir, environ()).out(ctx, "rev-parse", "--is-bare-repository", "--is-inside-work-tree",
		"--show-object-format", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
	// git prints what it knows before it fails, so that the lines say what kind of place this is.
	lines := strings.Split(out, "\n")
	switch {
	case len(lines) >= 2 && lines[0] == "true":
		return place{}, fmt.Errorf("%s is a bare repository; ralph needs a checkout, make one with: git clone %s", dir, quote(dir))
	case len(lines) >= 2 && lines[1] == "false":
		return place{}, fmt.Errorf("%s is inside a git directory, not a checkout; use its parent: %s", dir, quote(filepath.Dir(dir)))
	case err != nil:
		return place{}, explainNoRepository(dir, err)
	case len(lines) != 6:
		return place{}, fmt.Errorf("%s: a path with a line break cannot be used", printable(dir))
	}
	p := place{format: lines[2], gitDir: lines[3], common: lines[4], top: lines[5]}
	if p.common, err = filepath.EvalSymlinks(p.common); err != nil {
		return place{}, fmt.Errorf("repository: %w", err)
	}
	if p.gitDir, err = filepath.EvalSymlinks(p.gitDir); err != nil {
		return place{}, fmt.Errorf("repository: %w", err)
	}
	return p, nil
}

// id names the repository's state folder.
func (p place) id() string {
	name := filepath.Base(p.common)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(p.common))
	}
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, name)
	safe = strings.Trim(safe[:min(len(safe), 40)], ".-")
	if safe == "" {
		safe = "repository"
	}
	return safe + "-" + digest(p.common)
}

// digest is a short name for text of any length.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// explainNoRepository says why git does not work in dir, from what is there.
func explainNoRepository(dir string, err error) error {
	if _, ok := errors.AsType[*GitError](err); !ok {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, statErr := os.Lstat(filepath.Join(at, ".git"))
		if statErr == nil {
			owner, ok := info.Sys().(*syscall.Stat_t)
			if ok && int(owner.Uid) != os.Geteuid() {
				return fmt.Errorf("%s belongs to another user; to trust it: git config --global --add safe.directory %s", at, quote(at))
			}
			return fmt.Errorf("repository %s: %w", at, err)
		}
		if at == filepath.Dir(at) {
			return fmt.Errorf("%s is not in a git repository; make one with: git init %s", dir, quote(dir))
		}
	}
}

// quote makes a path safe to paste into a shell.
func quote(s string) string {
	safe := s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
