package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Pack writes all that the private repository borrows, and its index names, into one git pack, for a sandbox that gets a
// copy of the repository and cannot see the user's objects. It returns the pack's path without its suffix; the files
// (".pack", ".idx") go with the private repository. What a later Rebase needs is put into the private repository itself.
func (t *Tree) Pack(ctx context.Context) (string, error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return "", fmt.Errorf("pack for %s: %w", s.Key, err)
	}
	defer unlock()
	path, err := t.packBorrowed(ctx)
	if err != nil {
		return "", fmt.Errorf("pack for %s: %w", s.Key, errors.Join(err, removeTree(t.packDir())))
	}
	return path, nil
}

func (t *Tree) packDir() string { return t.repo.path("tmp", "pack-"+t.name) }

func (t *Tree) packBorrowed(ctx context.Context) (string, error) {
	refs, err := t.readRefs(ctx)
	if err != nil {
		return "", err
	}
	tips := []string{refs.branch, t.Spec().Base.Commit}
	staged, err := t.stagedObjects(ctx)
	if err != nil {
		return "", err
	}
	path, err := t.writePack(ctx, append(staged, tips...), nil)
	if err != nil {
		return "", err
	}
	return path, t.update(func(rec *record) { rec.Packed = tips })
}

// stagedObjects are what the index names and no commit need have.
func (t *Tree) stagedObjects(ctx context.Context) ([]string, error) {
	out, err := t.git().out(ctx, "diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", "HEAD", "--")
	if err != nil {
		return nil, err
	}
	var names []string
	fields := strings.Split(out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 { // ":100644 100644 OLD NEW M", and the path
		parts := strings.Fields(fields[i])
		if len(parts) != 5 {
			return nil, fmt.Errorf("git diff-index: cannot read %q", printable(fields[i]))
		}
		if name := parts[3]; parts[1] != "160000" && isObjectName(name) && strings.Trim(name, "0") != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// writePack packs what the tips reach and the known do not.
func (t *Tree) writePack(ctx context.Context, tips, known []string) (string, error) {
	dir := t.packDir()
	if err := removeTree(dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	var in strings.Builder
	for _, tip := range tips {
		in.WriteString(tip + "\n")
	}
	for _, k := range known {
		in.WriteString("^" + k + "\n")
	}
	// What a partial clone has not fetched cannot be had inside either.
	out, err := t.repo.git.run(ctx, in.String(), "pack-objects", "--revs", "--quiet", "--delta-base-offset",
		"--missing=allow-promisor", filepath.Join(dir, "pack"))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "pack-"+strings.TrimSpace(out)), nil
}

// packAlong puts into the private repository what its copy in a sandbox lacks of the tips.
func (t *Tree) packAlong(ctx context.Context, root *os.Root, tips []string) (err error) {
	known := t.record().Packed
	if len(known) == 0 {
		return nil
	}
	path, err := t.writePack(ctx, tips, known)
	if err != nil {
		return err
	}
	if err := root.MkdirAll("objects/pack", 0o700); err != nil {
		return err
	}
	for _, suffix := range []string{".pack", ".idx"} { // git looks for packs by their index
		if err := copyFileInto(root, "objects/pack/"+filepath.Base(path)+suffix, path+suffix); err != nil {
			return err
		}
	}
	return t.update(func(rec *record) { rec.Packed = append(rec.Packed, tips...) })
}

// copyFileInto gives the name to a copy of the file, whatever an agent has put there.
func copyFileInto(root *os.Root, name, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
