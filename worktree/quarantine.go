package worktree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// quarantine is a git directory of ralph's own, where objects from a sandbox stay until all of them are known to be
// sound. It has no configuration, hooks or refs of anyone's, and sees the user's objects read-only.
type quarantine struct {
	dir  string
	git  git
	tree *Tree
	caps Caps
}

func (t *Tree) quarantineDir() string { return t.repo.path("tmp", "quarantine-"+t.name) }

// smallImport is how many objects are stored one by one. A pack for each hand-back would slow down every git command of
// the user's before long.
const smallImport = 200

// openQuarantine makes it; the key's lock is held, so that what a crash left of one can be thrown away.
func (t *Tree) openQuarantine() (*quarantine, error) {
	dir := t.quarantineDir()
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if t.repo.objects.sha256 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
	}
	files := map[string]string{
		"HEAD": "ref: refs/heads/none\n", "config": config, "objects/info/alternates": alternates([]string{t.repo.objects.dir}),
	}
	if shallow := t.sharedFile("shallow"); shallow != "" {
		files["shallow"] = shallow
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	// Content bigger than the threshold is streamed; an object that lies about its size meets the limit instead of the
	// host's memory.
	g := newGit(t.repo.opts.StateDir, environ()).with("GIT_DIR="+dir, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=core.bigFileThreshold", "GIT_CONFIG_VALUE_0=16m",
		"GIT_CONFIG_KEY_1=pack.threads", "GIT_CONFIG_VALUE_1=1",
		"GIT_CONFIG_KEY_2=core.commitGraph", "GIT_CONFIG_VALUE_2=false", "GIT_ALLOC_LIMIT=1g")
	return &quarantine{dir: dir, git: g, tree: t, caps: t.repo.capsNow()}, nil
}

func (q *quarantine) close() error { return removeTree(q.dir) }

// addPack takes a pack. Checked packs have to hold sound objects only.
func (q *quarantine) addPack(ctx context.Context, pack io.Reader, checked bool) error {
	args := []string{"index-pack", "--stdin", "--fix-thin", "--threads=1", "--max-input-size=" + strconv.FormatInt(q.caps.Size, 10)}
	if checked {
		args = append(args, "--fsck-objects")
	}
	return q.git.pipe(ctx, pack, io.Discard, args...)
}

// accept checks that everything the commits need is here or in the user's repository, and writes what the user's
// repository lacks, and nothing else, into a file. Unsound tells that the objects have not been checked yet.
func (q *quarantine) accept(ctx context.Context, commits, known []string, unsound bool) (pack string, objects int, err error) {
	var in strings.Builder
	for _, c := range commits {
		in.WriteString(c + "\n")
	}
	for _, k := range known {
		in.WriteString("^" + k + "\n")
	}
	pack = filepath.Join(q.dir, "accepted.pack")
	f, err := os.OpenFile(pack, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", 0, err
	}
	limited := &limitedWriter{to: f, left: q.caps.Size}
	err = q.git.pipe(ctx, strings.NewReader(in.String()), limited, "pack-objects", "--revs", "--stdout", "--quiet",
		"--delta-base-offset")
	if limited.over {
		err = errTooBig
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", 0, err
	}
	if objects, err = packCount(pack); err != nil {
		return "", 0, err
	}
	if objects > q.caps.Objects {
		return "", 0, fmt.Errorf("%d objects: %w", objects, errTooBig)
	}
	if unsound && objects > 0 {
		index := filepath.Join(q.dir, "accepted.idx")
		if _, err := q.git.out(ctx, "index-pack", "--fsck-objects", "--threads=1", "-o", index, pack); err != nil {
			return "", 0, err
		}
		if err := q.checkSizes(ctx, index); err != nil {
			return "", 0, err
		}
	}
	return pack, objects, nil
}

// checkSizes holds the objects of a pack against the caps.
func (q *quarantine) checkSizes(ctx context.Context, index string) error {
	var total int64
	var bad error
	lines := proc.NewLines(func(line []byte) {
		fields := strings.Fields(string(line)) // name, kind, size, …
		if bad != nil || len(fields) < 4 || !isObjectName(fields[0]) {
			return
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if total += size; err != nil || size > q.caps.Blob || fields[1] != "blob" && size > treeLimit || total > q.caps.Size {
			bad = fmt.Errorf("object %s has %s bytes, of %d so far: %w", short(fields[0]), fields[2], total, errTooBig)
		}
	})
	err := q.git.pipe(ctx, nil, lines, "verify-pack", "-v", index)
	return errors.Join(bad, err)
}

// move brings the accepted objects into the user's repository. No ref leads to them yet.
func (q *quarantine) move(ctx context.Context, pack string, objects int) error {
	if objects == 0 {
		return nil
	}
	f, err := os.Open(pack)
	if err != nil {
		return err
	}
	defer f.Close()
	args := []string{"unpack-objects", "-q"}
	if objects > smallImport {
		args = []string{"index-pack", "--stdin", "--threads=1"}
	}
	return q.tree.repo.git.pipe(ctx, f, io.Discard, args...)
}

// packCount reads the number of objects from a pack's header.
func packCount(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	header := make([]byte, 12)
	if _, err := io.ReadFull(f, header); err != nil || !bytes.HasPrefix(header, []byte("PACK")) {
		return 0, fmt.Errorf("git pack-objects wrote no pack")
	}
	return int(binary.BigEndian.Uint32(header[8:])), nil
}

// limitedWriter takes no more than it has left, and remembers that there was more.
type limitedWriter struct {
	to   io.Writer
	left int64
	over bool
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		w.over = true
		return 0, errTooBig
	}
	return w.to.Write(p)
}
