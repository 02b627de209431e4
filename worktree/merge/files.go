package merge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// oneIndex makes git write an index as one file, and compare the files with it.
const oneIndex = "GIT_CONFIG_PARAMETERS='core.splitIndex=false' 'core.ignoreStat=false'"

// submodule is the mode of a commit of another repository. Git does not change its files.
const submodule = "160000"

// files are the files of a checkout.
type files struct {
	git  git.Runner // pinned to the checkout; runs no filter of the user's
	dir  string
	temp string // folder for temporary files
}

// entry is a file's mode and object in a commit or an index; zero: there is none.
type entry struct{ mode, id string }

func (e entry) isFile() bool { return e.mode != "" && e.mode != submodule }

// change is a path that differs between two commits.
type change struct {
	path     string
	old, new entry
}

func oldEntry(c change) entry { return c.old }
func newEntry(c change) entry { return c.new }

// changes lists the paths that differ.
func (f files) changes(ctx context.Context, from, to string) (all []change, err error) {
	out, err := f.git.Run(ctx, "", "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--end-of-options", from, to, "--")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "\x00") // facts and path of each change
	for i := 0; i+1 < len(fields); i += 2 {
		facts := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(facts) != 5 {
			return nil, fmt.Errorf("git diff-tree has printed %q", fields[i])
		}
		all = append(all, change{fields[i+1], entryOf(facts[0], facts[2]), entryOf(facts[1], facts[3])})
	}
	return all, nil
}

func entryOf(mode, id string) entry {
	if strings.Trim(mode, "0") == "" {
		return entry{}
	}
	return entry{mode, id}
}

// refused is the exit status of git if it does not begin, and of most other failures.
const refused = 128

// readTree moves index and files from one commit to another, and keeps the user's changes. Git changes nothing if they are in
// the way. With the option -n it only tries.
func (f files) readTree(ctx context.Context, from, to string, options ...string) error {
	_, err := f.git.Output(ctx, slices.Concat([]string{"read-tree", "-m", "-u"}, options, []string{from, to})...)
	return err
}

// adopt sets entries of the index to their new content, which the files already have.
func (f files) adopt(ctx context.Context, moved []change) error {
	if len(moved) == 0 {
		return nil
	}
	if _, err := f.git.Run(ctx, indexInfo(moved, newEntry), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	return f.refresh(ctx, f.git)
}

// refresh compares the files with the index. Differences are no error.
func (files) refresh(ctx context.Context, g git.Runner) error {
	if _, err := g.Output(ctx, "update-index", "-q", "--refresh"); err != nil && !git.Failed(err) {
		return err
	}
	return nil
}

// indexInfo describes entries to git update-index; those that are missing are removed.
func indexInfo(changes []change, of func(change) entry) string {
	var b strings.Builder
	for _, c := range changes {
		if e := of(c); e.mode != "" {
			fmt.Fprintf(&b, "%s %s\t%s\x00", e.mode, e.id, c.path)
		} else {
			fmt.Fprintf(&b, "0 %s\t%s\x00", strings.Repeat("0", len(c.old.id+c.new.id)), c.path) // one of them is empty
		}
	}
	return b.String()
}

// state is the state of changed paths in a checkout. A path that is in neither list is unchanged.
type state struct {
	stale   bool     // an entry of the index is at the old content
	moved   []change // at the new content, though the index is at the old one
	kept    []change // at the new content, as the index is, or missing
	gone    []change // missing, though the old commit has a file there
	blocked []string // changed by the user, or occupied by another file
}

// look compares index and files with both sides of the changes.
func (f files) look(ctx context.Context, index string, changes []change) (s state, err error) {
	staged, err := f.entries(ctx, index)
	if err != nil {
		return s, err
	}
	var differs [2]map[string]bool
	for i, of := range []func(change) entry{oldEntry, newEntry} {
		if differs[i], err = f.differing(ctx, changes, of); err != nil {
			return s, err
		}
	}
	p := newPlaces(f.dir, changes)
	for _, c := range changes {
		at, there := p.occupant(c.path)
		isOld := staged[c.path] == c.old
		s.stale = s.stale || isOld
		free := !there || at != c.path && p.old[at]
		switch same := func(e entry, differs map[string]bool) bool {
			return !e.isFile() && free || e.isFile() && !differs[c.path] || e.mode == submodule
		}; {
		case staged[c.path] == c.new: // git keeps the file, whatever it is
			if free || same(c.new, differs[1]) {
				s.kept = append(s.kept, c)
			}
		case !isOld:
			s.blocked = append(s.blocked, c.path)
		case same(c.new, differs[1]):
			s.moved = append(s.moved, c)
		case same(c.old, differs[0]) || at == c.path && c.old.mode == "" && p.cleared(c.path):
		case free && c.old.mode != "":
			s.gone = append(s.gone, c)
		default:
			s.blocked = append(s.blocked, at)
		}
	}
	return s, nil
}

// entries reads an index. Entries with conflicts have no object.
func (f files) entries(ctx context.Context, index string) (map[string]entry, error) {
	out, err := f.git.With("GIT_INDEX_FILE="+index).Run(ctx, "", "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	all := map[string]entry{}
	for line := range strings.SplitSeq(out, "\x00") {
		facts, path, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(facts); ok && len(fields) == 3 {
			if all[path] = (entry{fields[0], fields[1]}); fields[2] != "0" {
				all[path] = entry{mode: "conflict"}
			}
		}
	}
	return all, nil
}

// differing returns the paths whose files differ from one side of the changes, or are missing.
func (f files) differing(ctx context.Context, changes []change, of func(change) entry) (map[string]bool, error) {
	index := filepath.Join(f.temp, "index-"+rand.Text())
	defer func() { _ = os.Remove(index) }()
	g := f.git.With("GIT_INDEX_FILE="+index, oneIndex)
	only := slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return !of(c).isFile() })
	if _, err := g.Run(ctx, indexInfo(only, of), "update-index", "-z", "--index-info"); err != nil {
		return nil, err
	}
	if err := f.refresh(ctx, g); err != nil {
		return nil, err
	}
	out, err := g.Run(ctx, "", "diff-files", "--name-only", "-z", "--no-ext-diff")
	paths := map[string]bool{}
	for path := range strings.SplitSeq(out, "\x00") {
		paths[path] = true
	}
	return paths, err
}

// treeWith returns a tree with the old content of the changes.
func (f files) treeWith(ctx context.Context, tree string, changes []change) (string, error) {
	index := filepath.Join(f.temp, "index-"+rand.Text())
	defer func() { _ = os.Remove(index) }()
	g := f.git.With("GIT_INDEX_FILE="+index, oneIndex)
	if _, err := g.Output(ctx, "read-tree", tree); err != nil {
		return "", err
	}
	if _, err := g.Run(ctx, indexInfo(changes, oldEntry), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return g.Output(ctx, "write-tree")
}

// restore writes the files of the index again that a killed git has removed, or has begun to write. It had looked at all files
// before it changed the first one, and none was the user's.
func (f files) restore(ctx context.Context, changes []change, s state) error {
	gone := s.gone
	for _, c := range changes {
		if len(s.moved) > 0 && slices.Contains(s.blocked, c.path) && f.isPart(ctx, c) {
			if err := os.Remove(filepath.Join(f.dir, c.path)); err != nil {
				return err
			}
			if c.old.isFile() {
				gone = append(gone, c)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	var paths strings.Builder
	for _, c := range gone {
		paths.WriteString(c.path + "\x00")
	}
	_, err := f.git.Run(ctx, paths.String(), "checkout-index", "-u", "-z", "--stdin")
	return err
}

// isPart reports whether a file is the beginning of the new content, and not one of the old content, which a user may have
// shortened since.
func (f files) isPart(ctx context.Context, c change) bool {
	content, _, err := git.ReadRegular(filepath.Join(f.dir, c.path))
	begins := func(e entry) bool {
		whole, err := f.git.Run(ctx, "", "cat-file", "blob", e.id)
		return err == nil && strings.HasPrefix(whole, string(content))
	}
	return err == nil && c.new.isFile() && (len(content) == 0 || begins(c.new) && !(c.old.isFile() && begins(c.old)))
}

// crowded reports whether something is in the place of a new file.
func (f files) crowded(changes []change) bool {
	p := newPlaces(f.dir, changes)
	return slices.ContainsFunc(changes, func(c change) bool {
		_, there := p.occupant(c.path)
		return c.old.mode == "" && there
	})
}

// places finds out what is in the places of files.
type places struct {
	dir     string
	old     map[string]bool // the files of the old commit
	folders map[string]bool // folders that are known to exist
}

func newPlaces(dir string, changes []change) places {
	p := places{dir, map[string]bool{}, map[string]bool{}}
	for _, c := range changes {
		if c.old.mode != "" {
			p.old[c.path] = true
		}
	}
	return p
}

// occupant returns what is at a path, or the file in the place of one of its folders.
func (p places) occupant(path string) (at string, there bool) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' || p.folders[path[:i]] {
			continue
		}
		info, err := os.Lstat(filepath.Join(p.dir, path[:i]))
		if errors.Is(err, fs.ErrNotExist) {
			return "", false
		}
		if i == len(path) || err != nil || !info.IsDir() {
			return path[:i], true
		}
		p.folders[path[:i]] = true
	}
	return "", false
}

// cleared reports whether a folder has only files of the old commit, which git removes.
func (p places) cleared(folder string) bool {
	err := filepath.WalkDir(filepath.Join(p.dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if rel, failed := filepath.Rel(p.dir, path); failed != nil || !p.old[rel] {
				err = fs.ErrExist
			}
		}
		return err
	})
	info, statErr := os.Lstat(filepath.Join(p.dir, folder))
	return err == nil && statErr == nil && info.IsDir()
}

// blockedError means that files of the user's keep git from updating a checkout.
type blockedError struct{ paths []string }

func (e *blockedError) Error() string { return git.Printable(strings.Join(e.paths, ", ")) }
