package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Options describes what one import may contain.
type Options struct {
	Dir     string    // quarantine folder; its contents are deleted first
	Given   []string  // object folders with the history that the run was given, which is complete
	Known   []string  // commits of that history that may be the tip
	Shallow string    // content of the user's shallow file
	SHA256  bool      // object format
	Since   time.Time // start of the run; its commits must not be older
	Caps    Caps
}

// Quarantine holds the objects from a sandbox until they are accepted. Its folder is a git directory without configuration,
// hooks or refs of others. Git sees the given history there, but no other objects of the user's.
type Quarantine struct {
	Report
	Objects  int
	Gitlinks bool // a new folder refers to a commit of another repository

	dir string
	git git.Runner
}

// Read reads the output of a [Script] to the end of in. After an error, no files are left.
func Read(ctx context.Context, in io.Reader, o Options) (*Quarantine, error) {
	o.Caps = o.Caps.WithDefaults()
	r := bufio.NewReaderSize(in, 16<<10)
	rep, err := readReport(r)
	if err != nil {
		return nil, err
	}
	q := &Quarantine{Report: rep, dir: o.Dir}
	if err := q.create(o); err != nil {
		return nil, fmt.Errorf("make the quarantine: %w", errors.Join(err, q.Close()))
	}
	c := &contents{}
	if rep.Empty {
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			return nil, errors.Join(errors.New("read the sandbox's report: there is more data after its end"), err, q.Close())
		}
	} else if c, err = q.receive(ctx, r, o); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	if err := q.check(ctx, c, o); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.Objects, q.Gitlinks = c.objects, c.gitlinks
	return q, nil
}

// Close deletes the objects that were not accepted.
func (q *Quarantine) Close() error { return os.RemoveAll(q.dir) }

func (q *Quarantine) create(o Options) error {
	if err := q.Close(); err != nil {
		return err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(q.dir, sub), 0o700); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if o.SHA256 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
	}
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "objects/info/alternates": Alternates(o.Given)}
	if o.Shallow != "" {
		files["shallow"] = o.Shallow
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(q.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	// git does not hold files above this threshold in memory, and the limits stop everything else that is too large.
	hardened := git.HardenedEnv(git.Setting{Name: "core.bigFileThreshold", Value: "16m"},
		git.Setting{Name: "pack.threads", Value: "1"}, git.Setting{Name: "core.commitGraph", Value: "false"})
	q.git = git.New(q.dir).WithMemory(git.AgentMemory).With("GIT_DIR="+q.dir, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOC_LIMIT=1g").With(hardened...)
	return nil
}

// receive stores the pack while scanning it, and passes it to git after the scan. Git reads it through this process, so git
// ends if this process dies.
func (q *Quarantine) receive(ctx context.Context, r io.Reader, o Options) (*contents, error) {
	f, err := os.OpenFile(filepath.Join(q.dir, "incoming"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &scanner{in: bufio.NewReaderSize(io.TeeReader(&limitedReader{r, o.Caps.Size}, f), 16<<10), caps: o.Caps, sha256: o.SHA256}
	c, err := s.scan()
	if err != nil {
		return nil, err
	}
	if err := q.checkFolders(ctx, c, o); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return c, q.git.Pipe(ctx, f, io.Discard, "index-pack", "--stdin", "--strict", "--threads=1")
}

// limitedReader is a reader that fails after a number of bytes.
type limitedReader struct {
	in        io.Reader
	remaining int64
}

func (l *limitedReader) Read(b []byte) (int, error) {
	if int64(len(b)) > l.remaining {
		b = b[:l.remaining+1]
	}
	n, err := l.in.Read(b)
	if l.remaining -= int64(n); l.remaining < 0 {
		l.remaining, err = 0, ErrTooBig
	}
	return n, err
}

// clockSkew is how much older than the run its commits may claim to be.
const clockSkew = time.Hour

// check checks properties that involve several objects.
func (q *Quarantine) check(ctx context.Context, c *contents, o Options) error {
	known := map[string]bool{}
	for _, id := range o.Known {
		known[id] = true
	}
	if _, ok := c.commits[q.Tip]; !ok && !known[q.Tip] {
		return fmt.Errorf("commit %s is not in the pack", git.Short(q.Tip))
	}
	for _, id := range q.Others {
		if _, ok := c.commits[id]; !ok {
			if kind, err := q.git.Output(ctx, "cat-file", "-t", id); err != nil || kind != "commit" {
				return errors.Join(fmt.Errorf("commit %s is not in the pack", git.Short(id)), context.Cause(ctx))
			}
		}
	}
	if _, ok := c.trees[rawID(q.Tree)]; !ok && q.Tree != "" {
		kind, err := q.git.Output(ctx, "cat-file", "-t", q.Tree)
		if err != nil || kind != "tree" {
			return errors.Join(fmt.Errorf("the files' tree %s is not in the pack", git.Short(q.Tree)), context.Cause(ctx))
		}
	}
	old := ""
	for id, at := range c.commits {
		if at.Before(o.Since.Add(-clockSkew)) && (old == "" || id < old) { // the same in each import
			old = id
		}
	}
	if old != "" {
		return fmt.Errorf("commit %s is older than the run, but not in the run's history", git.Short(old))
	}
	return nil
}

// smallImport is the number of objects up to which they are stored one by one. One pack per import would soon slow down the
// user's git commands.
const smallImport = 200

// Accept moves the objects into the user's repository and, as a pack, into the object folder given, unless that is "".
func (q *Quarantine) Accept(ctx context.Context, user git.Runner, given string) error {
	if q.Objects == 0 {
		return nil
	}
	dir := filepath.Join(q.dir, "objects", "pack")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("store the imported objects: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok {
			continue
		}
		err := q.store(ctx, user, filepath.Join(dir, e.Name()))
		if err == nil && given != "" { // the index last: git looks for indexes
			err = os.Rename(filepath.Join(dir, name+".pack"), filepath.Join(given, "pack", name+".pack"))
			if err == nil {
				err = os.Rename(filepath.Join(dir, name+".idx"), filepath.Join(given, "pack", name+".idx"))
			}
		}
		if err != nil {
			return fmt.Errorf("store the imported objects: %w", err)
		}
	}
	return nil
}

func (q *Quarantine) store(ctx context.Context, user git.Runner, pack string) error {
	f, err := os.Open(pack)
	if err != nil {
		return err
	}
	defer f.Close()
	args := []string{"unpack-objects", "-q"}
	if q.Objects > smallImport {
		args = []string{"index-pack", "--stdin", "--threads=1"}
	}
	return user.Pipe(ctx, f, io.Discard, args...)
}

// Alternates returns the content of an alternates file, which lets a repository borrow from object folders.
func Alternates(folders []string) string {
	var b strings.Builder
	for _, f := range folders {
		b.WriteString(git.Alternate(f) + "\n")
	}
	return b.String()
}
