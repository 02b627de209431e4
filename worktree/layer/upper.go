package layer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

type reader = *bufio.Reader

// maxChanges is the number of files and folders in which a tree may differ from its layer.
const maxChanges = 2000

// errTooDifferent stops git early.
var errTooDifferent = errors.New("enough is known")

// change is a file or folder that differs between two commits.
type change struct {
	status byte // A, D, M or T, as in git's output
	tree   bool // the old or the new entry is a folder
	// The old or the new entry is another repository's commit. Git makes an empty folder for it, through which the lower
	// folder would show.
	module bool
	path   string
}

// changesFrom lists the differences of the tree's commit from another commit. similar is false if there are too many for a
// tree over that commit's layer, or if unchanged files may need other contents. index is the layer's index.
func (c Checkout) changesFrom(ctx context.Context, from, index string) (changes []change, similar bool, err error) {
	if from == c.Commit {
		return nil, true, nil
	}
	err = c.Git.Read(ctx, "", func(r reader) error {
		for {
			ch, err := readChange(r)
			if errors.Is(err, io.EOF) {
				return nil
			}
			name := path.Base(ch.path)
			if err == nil && (ch.module || len(changes) == maxChanges || strings.EqualFold(name, ".gitattributes") || strings.EqualFold(name, ".lfsconfig")) {
				err = errTooDifferent
			}
			if err != nil {
				return err
			}
			changes = append(changes, ch)
		}
	}, "diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv", "--end-of-options", from, c.Commit, "--")
	if errors.Is(err, errTooDifferent) || git.Failed(err) { // the layer's commit may be gone
		return nil, false, nil
	}
	// Changes are written without filters. Relative to an older base, some changes are the base's own, which need them.
	if filters := c.Config.Filters(); err == nil && from != c.Trusted && len(filters) > 0 {
		var paths strings.Builder
		for _, ch := range changes {
			paths.WriteString(ch.path + "\x00")
		}
		filtered, err := c.Git.FilteredOf(ctx, filters, index, paths.String())
		return changes, filtered == "", err
	}
	return changes, err == nil, err
}

// readChange parses one entry of git diff-tree --raw -z.
func readChange(r reader) (change, error) {
	about, err := r.ReadString(0)
	if err != nil {
		return change{}, err
	}
	name, err := r.ReadString(0)
	fields := strings.Fields(strings.TrimSuffix(about, "\x00"))
	if err != nil || len(fields) != 5 || fields[4] == "" {
		return change{}, fmt.Errorf("git diff-tree: %q is no change", about)
	}
	const folder, module = "040000", "160000"
	hasMode := func(mode string) bool { return fields[0] == ":"+mode || fields[1] == mode }
	ch := change{
		status: fields[4][0],
		tree:   hasMode(folder),
		module: hasMode(module) && fields[0] != ":"+fields[1],
		path:   strings.TrimSuffix(name, "\x00"),
	}
	if ch.status != 'A' && git.IsEmptyTree(fields[3]) { // git does not check out empty folders
		ch.status = 'D'
	}
	return ch, nil
}

// writeUpper makes the upper folder, and last the index.
func (s Stores) writeUpper(ctx context.Context, c Checkout, b lowerLayer) error {
	tempIndex := c.Index + ".part"
	index, err := os.ReadFile(s.index(b.name))
	if err == nil {
		err = os.WriteFile(tempIndex, index, 0o600)
	}
	if err == nil && len(b.changes) > 0 {
		err = c.Git.CheckOutChanges(ctx, c.Config, tempIndex, c.Commit)
	}
	if err == nil {
		err = writeWhiteouts(c.Dir, b.changes)
	}
	if err != nil {
		return fmt.Errorf("lay the files over those of %s: %w", b.name, err)
	}
	return os.Rename(tempIndex, c.Index)
}

// writeWhiteouts makes a whiteout for everything that the commit lacks. A file that git has put in the place of another
// needs none: it covers that one.
func writeWhiteouts(dir string, changes []change) error {
	deletedFolders := map[string]bool{}
	for _, ch := range changes {
		if ch.status == 'D' && ch.tree {
			deletedFolders[ch.path] = true
		}
	}
	for _, ch := range changes {
		if ch.status != 'D' || slices.ContainsFunc(parents(ch.path), func(p string) bool { return deletedFolders[p] }) {
			continue
		}
		at := filepath.Join(dir, filepath.FromSlash(ch.path))
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), fs.ModePerm); err != nil {
			return err
		}
		if err := whiteout(at); err != nil {
			return &fs.PathError{Op: "whiteout", Path: at, Err: err}
		}
	}
	return nil
}

// parents returns the folders that contain a path.
func parents(name string) (all []string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		all = append(all, dir)
	}
	return all
}

// maxLinks is the number of links in a path that are followed, as in the kernel.
const maxLinks = 40

// Resolve follows the links in the folders of a path of a tree over a layer, because the upper folder dir does not contain
// the layer's links. A path that leads out of the tree still does so afterwards.
func (s Stores) Resolve(name, dir, file string) string {
	file = filepath.Clean(file)
	for range maxLinks {
		next := resolveFirstLink(dir, s.Tree(name), file)
		if next == file {
			break
		}
		file = next
	}
	return file
}

// resolveFirstLink resolves the first link in the path.
func resolveFirstLink(upper, lower, file string) string {
	for i, r := range file {
		if r != filepath.Separator {
			continue
		}
		at := filepath.Join(upper, file[:i])
		info, err := os.Lstat(at)
		below, errBelow := os.Lstat(filepath.Join(lower, file[:i]))
		hidesLower := err == nil && errBelow == nil && !below.IsDir()
		if errors.Is(err, fs.ErrNotExist) {
			at, info, err = filepath.Join(lower, file[:i]), below, errBelow
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			if err != nil || filepath.IsAbs(target) {
				return target
			}
			return filepath.Join(filepath.Dir(file[:i]), target, file[i:])
		}
		if err != nil || hidesLower {
			return file
		}
	}
	return file
}
