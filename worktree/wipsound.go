package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// soundTries bounds how often a snapshot is made anew without the files that git's check has refused so far.
const soundTries = 20

// saveSound is saveChanges for the files of a sandbox. They come in as commits do: through a quarantine, which they leave
// only when they pass git's check. Files that do not pass are left out.
func (t *Tree) saveSound(ctx context.Context, l look, before string) (string, error) {
	unsound := map[string]bool{}
	var reason error
	for range soundTries {
		commit, refused, err := t.trySound(ctx, l, before, unsound)
		if len(refused) == 0 {
			return commit, errors.Join(t.explainUnsound(unsound, reason), err)
		}
		reason = err
		for _, path := range refused {
			unsound[path] = true
		}
	}
	return "", fmt.Errorf("the uncommitted changes are not saved, too much of them is unsound: %w", reason)
}

// trySound saves the changes but for some files. Where that fails for what is in other files, it says in which.
func (t *Tree) trySound(ctx context.Context, l look, before string, without map[string]bool) (commit string, refused []string, err error) {
	q, err := t.openQuarantine()
	if err != nil {
		return "", nil, fmt.Errorf("make the quarantine: %w", err)
	}
	defer func() { err = errors.Join(err, q.close()) }()
	store := objectStore{dir: filepath.Join(q.dir, "objects"), sha256: t.repo.objects.sha256}
	tree, unsaved := t.snapshot(ctx, l, without, "GIT_OBJECT_DIRECTORY="+store.dir)
	if tree == "" {
		return "", nil, unsaved
	}
	commit, err = t.commitChanges(ctx, store, l.head, before, tree)
	if err != nil || commit == before {
		return commit, nil, errors.Join(unsaved, err)
	}
	known := []string{l.head}
	if before != "" {
		known = append(known, before)
	}
	pack, objects, err := q.accept(ctx, []string{commit}, known, true)
	if err == nil {
		err = q.move(ctx, pack, objects)
	}
	if err == nil {
		return commit, nil, unsaved
	}
	if failed, ok := errors.AsType[*GitError](err); ok && ctx.Err() == nil {
		var lookErr error
		if refused, lookErr = q.named(ctx, l.head, tree, failed.Stderr); lookErr != nil {
			return "", nil, errors.Join(unsaved, lookErr)
		}
		if len(refused) > 0 {
			return "", refused, err
		}
	}
	return "", nil, errors.Join(unsaved, fmt.Errorf("the uncommitted changes are not saved: %w", err))
}

// nameChanges is the name of a snapshot's tree, which is not kept where it may be unsound.
func (t *Tree) nameChanges(ctx context.Context, l look) (tree string, err error) {
	if !t.record().Private {
		return t.snapshot(ctx, l, nil)
	}
	q, err := t.openQuarantine()
	if err != nil {
		return "", fmt.Errorf("make the quarantine: %w", err)
	}
	defer func() { err = errors.Join(err, q.close()) }()
	return t.snapshot(ctx, l, nil, "GIT_OBJECT_DIRECTORY="+filepath.Join(q.dir, "objects"))
}

// ignored lists those of the paths that are not in the index: what has a name like .git, git leaves out and says nothing.
// Where no name comes near to that, git is not asked.
func (g git) ignored(ctx context.Context, paths []string) ([]string, error) {
	var doubtful []string
	for _, path := range paths {
		plain := strings.Map(func(r rune) rune { // some systems take ".g\u200cit" for .git
			if r > unicode.MaxASCII {
				return -1
			}
			return unicode.ToLower(r)
		}, path)
		if strings.Contains(plain, "git") || strings.Contains(plain, "~") {
			doubtful = append(doubtful, path)
		}
	}
	if len(doubtful) == 0 {
		return nil, nil
	}
	out, err := g.run(ctx, "", "ls-files", "-z", "--cached")
	if err != nil {
		return nil, err
	}
	in := map[string]bool{}
	for path := range strings.SplitSeq(out, "\x00") {
		in[path] = true
	}
	return slices.DeleteFunc(doubtful, func(path string) bool { return in[path] }), nil
}

// named lists the files that a tree has not in common with the head, and whose content git's words name.
func (q *quarantine) named(ctx context.Context, head, tree, words string) ([]string, error) {
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`[0-9a-f]{40,64}`).FindAllString(words, -1) {
		named[name] = true
	}
	out, err := q.git.out(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--end-of-options", head, tree)
	if err != nil {
		return nil, fmt.Errorf("look for unsound files: %w", err)
	}
	var paths []string
	fields := strings.Split(out, "\x00") // :MODE MODE OLD NEW STATUS, path, and so on
	for i := 0; i+1 < len(fields); i += 2 {
		if f := strings.Fields(fields[i]); len(f) == 5 && named[f[3]] {
			paths = append(paths, fields[i+1])
		}
	}
	return paths, nil
}

// explainUnsound names files that are not in the snapshot; nil when there are none.
func (t *Tree) explainUnsound(paths map[string]bool, reason error) error {
	if len(paths) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the uncommitted files are refused by git's own check, the rest is saved; first: %s (%w)",
		len(paths), printable(filepath.Join(t.Dir(), slices.Min(slices.Collect(maps.Keys(paths))))), reason)
}
