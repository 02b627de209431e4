// Package statedir finds the folder with ralph's state of a repository. It distinguishes the repository from earlier and
// later ones at the same path, and finds the folder again after the repository has moved or lost its mark. Its caller is
// package worktree. It is safe for concurrent use by several processes.
package statedir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
)

// owner is the repository to which a state folder belongs.
type owner struct {
	mark, common string
	state        string    // path of the state folder
	since        time.Time // when the state folder became the repository's
}

// ErrFolder means that the state folder cannot be made or written.
var ErrFolder = errors.New("state folder")

// ErrInCheckout means that a state folder would be in the checkout, and that git does not ignore it.
var ErrInCheckout = errors.New("git does not ignore it")

// ownerFile is the file in a state folder with the mark and the path of its repository.
const ownerFile = "repository"

// Find returns the repository's state folder below root, and makes it if needed. All checkouts of a repository share it. A
// copy of a repository, or a new one at the same path, gets another folder. A repository that was moved keeps its folder.
// So does one with refs of ralph's that has lost its mark. Find makes no folder that Open refuses with ErrInCheckout.
func Find(ctx context.Context, root string, p git.Location) (string, error) {
	all := owners(root)
	mark, err := readMark(p.Common)
	if err == nil && mark == "" {
		mark, err = makeMark(ctx, p, all)
	}
	if err != nil {
		return "", fmt.Errorf("mark the repository: %w", err)
	}
	self := owner{mark: mark, common: p.Common, state: filepath.Join(root, folderName(p.Common, mark))}
	for _, o := range all {
		if o.mark == mark && o.common == p.Common {
			return o.state, nil
		}
	}
	for _, o := range all {
		if o.state == self.state { // the folder belongs to another repository, which was moved
			self.state += "-" + rand.Text()[:8]
		}
		if previousMark, err := readMark(o.common); o.mark == mark && mark != "" && previousMark != mark && err == nil {
			self.state = o.state // this repository was moved from there
			break
		}
	}
	if _, err := place(ctx, self.state, p); err != nil {
		return "", err
	}
	return self.state, self.save()
}

// Namespace returns the path of a namespace's folders, relative to the state folder; empty: they are in it.
func Namespace(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join("namespaces", name)
}

// Open makes a state folder for the repository, with subfolders, and returns its path with links resolved, as git prints
// it. It refuses a folder that belongs to another repository: the two would end each other's runs. It refuses a folder
// in the checkout with ErrInCheckout, unless git ignores it.
func Open(ctx context.Context, dir string, p git.Location, folders ...string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("state folder %q is relative; give an absolute path", dir)
	}
	dir, err := place(ctx, dir, p)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if err := setOwner(ctx, dir, p); err != nil {
		return "", err
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
			return "", fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}
	return dir, nil
}

// place returns the path of a state folder, which need not exist, with links resolved. It fails with ErrInCheckout.
func place(ctx context.Context, dir string, p git.Location) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	dir = git.Resolved(dir)
	if shown, err := isUntracked(ctx, dir, p); err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	} else if shown {
		return "", fmt.Errorf("state folder %s is in the checkout %s, and %w: git clean would delete it", dir, p.Top, ErrInCheckout)
	}
	return dir, nil
}

// isUntracked reports whether the files of a state folder are untracked files of the checkout, which git status shows.
func isUntracked(ctx context.Context, dir string, p git.Location) (bool, error) {
	within := func(folder string) bool {
		return folder != "" && strings.HasPrefix(dir+"/", strings.TrimSuffix(folder, "/")+"/")
	}
	if !within(p.Top) || within(p.GitDir) || within(p.Common) {
		return false, nil
	}
	g := git.New(p.Top).With("GIT_LITERAL_PATHSPECS=0") // check-ignore refuses literal pathspecs
	ignored, err := g.Test(ctx, "check-ignore", "--quiet", "--", filepath.Join(dir, ownerFile))
	return !ignored, err
}

// setOwner makes the repository the owner of a state folder that has none.
func setOwner(ctx context.Context, state string, p git.Location) error {
	previous, err := readOwner(filepath.Join(state, ownerFile))
	owned := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state folder %s: read its owner: %w", state, err)
	}
	mark, err := readMark(p.Common)
	if err == nil && mark == "" {
		mark, err = makeMark(ctx, p, []owner{previous})
	}
	switch {
	case err != nil:
		return fmt.Errorf("mark the repository: %w", err)
	case !owned:
		return owner{mark: mark, common: p.Common, state: state}.save()
	case previous.mark != mark || mark == "" && previous.common != p.Common:
		return fmt.Errorf("state folder %s belongs to another repository, %s; this one, %s, needs a folder of its own",
			state, previous.common, p.Common)
	}
	return nil
}

// owners lists the owners of all state folders, newest first.
func owners(root string) (all []owner) {
	entries, _ := os.ReadDir(root) // a missing folder has none
	for _, e := range entries {
		if o, err := readOwner(filepath.Join(root, e.Name(), ownerFile)); err == nil {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b owner) int { return b.since.Compare(a.since) })
	return all
}

func readOwner(path string) (owner, error) {
	content, info, err := git.ReadRegular(path)
	if err != nil {
		return owner{}, err
	}
	mark, common, ok := strings.Cut(strings.TrimSuffix(string(content), "\n"), "\n")
	if !ok {
		return owner{}, errors.New("it is damaged")
	}
	return owner{mark, common, filepath.Dir(path), info.ModTime()}, nil
}

// save makes the state folder and records its owner.
func (o owner) save() error {
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if err := disk.WriteFile(filepath.Join(o.state, ownerFile), []byte(o.mark+"\n"+o.common+"\n"), 0o600, disk.Power); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

// folderName returns a name that is readable, path-safe and unique on this host.
func folderName(common, mark string) string {
	name := filepath.Base(common)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(common))
	}
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, name)
	return cmp.Or(strings.Trim(safe[:min(len(safe), 40)], ".-"), "repository") + "-" + git.Digest(common, mark)
}

// markFile is the file in the git directory with the repository's mark, which distinguishes it from earlier and later
// repositories at its path.
const markFile = "ralph-id"

// readMark reads a repository's mark, or "" if it is missing or incomplete.
func readMark(common string) (string, error) {
	content, _, err := git.ReadRegular(filepath.Join(common, markFile))
	mark, complete := strings.CutSuffix(string(content), "\n")
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!complete || len(mark) != len(rand.Text())) {
		return "", nil
	}
	return mark, err
}

// makeMark writes the mark. A repository with refs of ralph's had one before, so makeMark restores that if a state folder
// has it. It returns "" if the folder cannot be written, as on a read-only file system.
func makeMark(ctx context.Context, p git.Location, all []owner) (string, error) {
	mark := rand.Text()
	if i := slices.IndexFunc(all, func(o owner) bool { return o.common == p.Common && o.mark != "" }); i >= 0 {
		refs, err := git.New(p.Top).Output(ctx, "for-each-ref", "--count=1", "refs/ralph/")
		if err != nil {
			return "", err
		}
		if refs != "" {
			mark = all[i].mark
		}
	}
	// Link a complete file: another process never reads an incomplete mark, and the first mark stays.
	path := filepath.Join(p.Common, markFile)
	temp, err := disk.WriteTemp(p.Common, []byte(mark+"\n"), 0o644, disk.Power) // other users of the repository read it, too
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temp) }()
	if err := os.Link(temp, path); err != nil {
		if other, _ := readMark(p.Common); other != "" {
			return other, nil
		}
		// The mark is incomplete, or the file system has no hard links.
		if err := os.Rename(temp, path); err != nil {
			return "", err
		}
	}
	return readMark(p.Common)
}
