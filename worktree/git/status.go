package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Status examines a checkout without changing anything and without starting git in nested repositories. It returns HEAD's
// commit, empty if there is none yet, and whether the files differ from that commit.
func (g Runner) Status(ctx context.Context) (head string, dirty bool, err error) {
	out, err := g.Run(ctx, "", "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal",
		"--no-renames", "--ignore-submodules=dirty", "--no-ahead-behind")
	if err != nil {
		return "", false, err
	}
	for record := range strings.SplitSeq(out, "\x00") {
		header, isHeader := strings.CutPrefix(record, "# ")
		if !isHeader {
			dirty = dirty || record != ""
			continue
		}
		if oid, ok := strings.CutPrefix(header, "branch.oid "); ok && IsObject(oid) {
			head = oid
		}
	}
	return head, dirty, nil
}

// BlockingPath returns a path that keeps git from updating the checkout at dir to a commit: a tracked file that both have
// changed, or a file at the place of a new one. It returns "" if there is none.
func (g Runner) BlockingPath(ctx context.Context, dir, commit string) (string, error) {
	g = g.WithDir(dir)
	names := func(args ...string) ([]string, error) {
		out, err := g.Run(ctx, "", append([]string{
			"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty",
		}, args...)...)
		return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), err
	}
	dirty, err := names("HEAD", "--")
	if err != nil {
		return "", err
	}
	changed, err := names("HEAD..."+commit, "--")
	if err != nil {
		return "", err
	}
	unseen, err := g.changedUnseen(ctx, dir, changed)
	if err != nil {
		return "", err
	}
	for _, path := range changed {
		if slices.Contains(dirty, path) || slices.Contains(unseen, path) {
			return Printable(path), nil
		}
	}
	added, err := names("--diff-filter=A", "HEAD", commit, "--")
	for _, path := range added {
		if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
			return Printable(path), nil
		}
	}
	return "", err
}

// changedUnseen returns those paths whose files have changed although the index tells git to ignore changes: no diff shows
// them, but git does not overwrite them.
func (g Runner) changedUnseen(ctx context.Context, dir string, paths []string) (changed []string, err error) {
	index, err := g.Run(ctx, "", "ls-files", "--stage", "-v", "-z")
	if err != nil {
		return nil, err
	}
	var ids, files []string
	for entry := range strings.SplitSeq(index, "\x00") {
		flags, path, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(flags); len(fields) == 4 && HidesChanges(entry) && slices.Contains(paths, path) {
			if at, err := os.Lstat(filepath.Join(dir, path)); err == nil && at.Mode().IsRegular() && !strings.ContainsAny(path, "\r\n") && path[0] != '"' {
				ids, files = append(ids, fields[2]), append(files, path)
			}
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	hashes, err := g.Run(ctx, strings.Join(files, "\n")+"\n", "hash-object", "--stdin-paths")
	for n, hash := range strings.Fields(hashes) {
		if hash != ids[n] {
			changed = append(changed, files[n])
		}
	}
	return changed, err
}

// HidesChanges reports whether a line of `ls-files -v` is of a file whose changes git ignores.
func HidesChanges(line string) bool { return line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' }
