// Package statedir finds the folder with ralph's state of a repository. It tells the repository from others that were, or
// will be, at its path, and finds the folder again when the repository was moved or has lost its mark. Package worktree
// calls it. It is safe for concurrent use by several processes.
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

	"github.com/ralph-pool/ralph/worktree/git"
)

// owner is the repository that a state folder belongs to.
type owner struct {
	mark, common string
	state        string    // the folder
	since        time.Time // when it began to belong to it
}

// ErrFolder says that the state folder cannot be made or written.
var ErrFolder = errors.New("state folder")

// ownerFile in a state folder holds mark and path of its repository.
const ownerFile = "repository"

// Find returns the repository's state folder below root, and makes it. All checkouts of a repository have the same. A
// repository that is copied, or made again at the same path, has another. One that was moved keeps its folder, and so does
// one with refs of ralph's whose mark is lost.
func Find(ctx context.Context, root string, p git.Location) (string, error) {
	all := owners(root)
	mark, err := readMark(p.Common)
	if err == nil && mark == "" {
		mark, err = makeMark(ctx, p, all)
	}
	if err != nil {
		return "", fmt.Errorf("mark the repository: %w", err)
	}
	me := owner{mark: mark, common: p.Common, state: filepath.Join(root, name(p.Common, mark))}
	for _, o := range all {
		if o.mark == mark && o.common == p.Common {
			return o.state, nil
		}
	}
	for _, o := range all {
		if o.state == me.state { // it went with another repository that was moved
			me.state += "-" + rand.Text()[:8]
		}
		if was, err := readMark(o.common); o.mark == mark && mark != "" && was != mark && err == nil {
			me.state = o.state // it was moved from there
			break
		}
	}
	return me.state, me.save()
}

// Open makes a state folder for the repository, with folders below it, and returns its canonical path, the one that git
// prints. It refuses one that belongs to another repository: the two would end each other's runs.
func Open(ctx context.Context, dir string, p git.Location, folders ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if err := own(ctx, dir, p); err != nil {
		return "", err
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
			return "", fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}
	return dir, nil
}

// own makes the repository the owner of a state folder that has none.
func own(ctx context.Context, state string, p git.Location) error {
	was, err := readOwner(filepath.Join(state, ownerFile))
	owned := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state folder %s: read its owner: %w", state, err)
	}
	mark, err := readMark(p.Common)
	if err == nil && mark == "" {
		mark, err = makeMark(ctx, p, []owner{was})
	}
	switch {
	case err != nil:
		return fmt.Errorf("mark the repository: %w", err)
	case !owned:
		return owner{mark: mark, common: p.Common, state: state}.save()
	case was.mark != mark || mark == "" && was.common != p.Common:
		return fmt.Errorf("state folder %s belongs to another repository, %s; this one, %s, needs a folder of its own",
			state, was.common, p.Common)
	}
	return nil
}

// owners lists the owners of all state folders, the youngest first.
func owners(root string) (all []owner) {
	entries, _ := os.ReadDir(root) // without it there are none
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

// save makes the state folder and names its owner.
func (o owner) save() error {
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	temp := filepath.Join(o.state, ownerFile+"."+rand.Text())
	err := git.WriteNew(temp, []byte(o.mark+"\n"+o.common+"\n"), 0o600, true)
	if err == nil {
		err = os.Rename(temp, filepath.Join(o.state, ownerFile))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

// name is readable, path-safe and unique on this host.
func name(common, mark string) string {
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

// markFile is a file in the git directory that tells this repository from others that were, or will be, at its path.
const markFile = "ralph-id"

// readMark reads a repository's mark; empty: there is none, or not all of it.
func readMark(common string) (string, error) {
	content, _, err := git.ReadRegular(filepath.Join(common, markFile))
	mark, whole := strings.CutSuffix(string(content), "\n")
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!whole || len(mark) != len(rand.Text())) {
		return "", nil
	}
	return mark, err
}

// makeMark writes the mark, the lost one if a state folder has it: a repository with refs of ralph's had one. Where nothing
// can be written, such as on a read-only file system, it is empty.
func makeMark(ctx context.Context, p git.Location, all []owner) (string, error) {
	mark := rand.Text()
	if i := slices.IndexFunc(all, func(o owner) bool { return o.common == p.Common && o.mark != "" }); i >= 0 {
		refs, err := git.New(p.Top).Out(ctx, "for-each-ref", "--count=1", "refs/ralph/")
		if err != nil {
			return "", err
		}
		if refs != "" {
			mark = all[i].mark
		}
	}
	// A link to a whole file: another process never reads half a mark, and the first one stays.
	path := filepath.Join(p.Common, markFile)
	temp, err := os.CreateTemp(p.Common, markFile+".")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.WriteString(mark + "\n")
	// Others who may use the repository read it, too.
	if err := errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return "", err
	}
	if err := os.Link(temp.Name(), path); err != nil {
		if other, _ := readMark(p.Common); other != "" {
			return other, nil
		}
		// Half a mark, or a file system without hard links.
		if err := os.Rename(temp.Name(), path); err != nil {
			return "", err
		}
	}
	return readMark(p.Common)
}
