// Package homes keeps what setup has made on a base, so that later sandboxes start with it. Package pool/workspace uses it. It is
// a part of package pool, and not for other programs.
package homes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/diff"
)

// Store keeps what setup has made on a base, before any agent: a home and, if setup depends on known files only, the files that
// setup put into the worktree. All later sandboxes start with it. Only setup commands write it, once. It is a cache: without it
// setup runs in an empty home. Several goroutines and processes may use the homes at the same time.
type Store struct {
	// Dir is the folder of the homes. Most is the maximum number of bytes of all homes; the least recently used are removed
	// first.
	Dir      string
	MaxBytes int64
	// For names what homes depend on besides the base's own files, such as the setup commands.
	For string
	// Keyer returns what else they depend on; nil: nothing.
	Keyer sandboxes.HomeKeyer
	// Inputs are the only files and folders of the base that setup depends on, as paths from the top: the owner of the repository
	// says so. Without Inputs, Reads has the files that known setup commands read, as far as ralph knows; results that rest on
	// that prove nothing about a commit. Without both, homes depend on the build files, and no file of a worktree is kept.
	Inputs []string
	Reads  ecosystem.Reads
	// HomeOnly keeps no file of a worktree, because commands other than setup put files there.
	HomeOnly bool
	Repo     *worktree.Repo
	Log      *slog.Logger

	mu    sync.Mutex
	names map[string]homeName // guarded by mu; by commit and key
}

// homeName names what setup makes on a commit; an empty name: it is not kept.
type homeName struct {
	name                string
	dependsOnInputsOnly bool // it depends on nothing else
	cache               bool // the home is only a cache
	// unknown names some of the inputs that the commit lacks, perhaps by mistake, and of the links and submodules in inputs. With
	// any of them setup may depend on anything.
	unknown []string
}

// Limits, because a service looks at ever more commits, and agents choose the content of theirs.
const (
	maxNames   = 1000 // maximum number of remembered names
	maxUnknown = 20   // maximum number of unknown inputs remembered for a commit
)

// Names in the folder of a home.
const (
	homeFolder = "home"
	treeFolder = "tree" // files that setup has put into the worktree; missing: they are not kept
	madeFile   = "made" // id of the machine's start, and the paths of the files and folders in treeFolder, separated by NUL
)

// name returns the name for a commit, which may build on another commit.
func (h *Store) name(ctx context.Context, commit, from string) (n homeName, err error) {
	key, err := h.key(ctx)
	if err != nil || key == "" {
		return n, err
	}
	at := commit + " " + key
	h.mu.Lock()
	n, known := h.names[at]
	h.mu.Unlock()
	if known {
		return n, nil
	}
	same := from != "" && from != commit
	if same { // most commits change none of the files that setup reads: no need to list all files of these
		reads := h.reader()
		err = h.Repo.Git().Lines(ctx, func(file []byte) { same = same && !reads(string(file)) },
			"-c", "core.quotePath=false", "diff-tree", "-r", "--name-only", "--no-renames", "--end-of-options", from, commit, "--")
	}
	switch {
	case err != nil:
	case same:
		n, err = h.name(ctx, from, "")
	default:
		n, err = h.digest(ctx, commit, key)
	}
	if err != nil {
		return homeName{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil || len(h.names) >= maxNames {
		h.names = map[string]homeName{}
	}
	h.names[at] = n
	return n, nil
}

// key returns what the sandbox adds to the names; empty: it keeps no home.
func (h *Store) key(ctx context.Context) (string, error) {
	if h.Keyer == nil {
		return "any", nil
	}
	return h.Keyer.HomeKey(ctx)
}

// reader returns a function that reports whether setup reads a file, named as git prints it.
func (h *Store) reader() func(file string) bool {
	patterns := h.Reads.Files
	if len(patterns) == 0 {
		for _, e := range ecosystem.All() {
			patterns = append(patterns, e.Inputs...)
			for _, g := range e.Groups {
				if g.Role == ecosystem.Build {
					patterns = append(patterns, g.Files...)
				}
			}
		}
	}
	return func(file string) bool {
		switch {
		case strings.HasPrefix(file, `"`): // quoted names are not worth decoding
			return true
		case len(h.Inputs) > 0:
			return slices.ContainsFunc(h.Inputs, func(in string) bool { return IsBelow(file, in) })
		}
		return match.Any(patterns, file)
	}
}

// IsBelow reports whether a file is an input or inside it.
func IsBelow(file, in string) bool {
	in = path.Clean(in)
	return in == "." || file == in || strings.HasPrefix(file, in+"/")
}

// textLimit is the maximum number of bytes that are read of the files that setup reads.
const textLimit = 8 << 20

func (h *Store) digest(ctx context.Context, commit, key string) (n homeName, err error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %q %q\n%s\n", h.For, h.Inputs, h.Reads.Files, key)
	known := len(h.Inputs) == 0 && len(h.Reads.Files) > 0
	args := []string{"-c", "core.quotePath=false", "ls-tree", "--full-tree", "-r"}
	reads := h.reader()
	var files []string
	var entries []diff.Entry
	missing := slices.Clone(h.Inputs)
	var links []string // their targets are not in the tree at their place
	err = h.Repo.Git().Lines(ctx, func(line []byte) {
		about, file, _ := strings.Cut(string(line), "\t")
		if len(h.Inputs) > 0 || reads(file) {
			missing = slices.DeleteFunc(missing, func(in string) bool { return IsBelow(file, in) })
			_, _ = fmt.Fprintf(sum, "%s\n", line)
			if strings.HasPrefix(about, "120000 ") || strings.HasPrefix(about, "160000 ") {
				links = append(links, file)
			}
			if fields := strings.Fields(about); known && len(fields) == 3 {
				files, entries = append(files, file), append(entries, diff.Entry{Mode: fields[0], ID: fields[2]})
			}
		}
	}, append(append(args, commit, "--"), h.Inputs...)...)
	if err != nil {
		return n, err
	}
	unknown := append(missing, links...)
	unknown = slices.Clone(unknown[:min(maxUnknown, len(unknown))])
	sure := known || len(h.Inputs) > 0
	n = homeName{
		hex.EncodeToString(sum.Sum(nil)[:16]), !h.HomeOnly && sure && len(unknown) == 0,
		known && !h.Reads.Code && len(unknown) == 0, unknown,
	}
	texts, err := diff.Texts(ctx, h.Repo.Git(), entries, diff.Limit{Each: textLimit, All: textLimit})
	if err != nil {
		n.dependsOnInputsOnly, n.cache = false, false // the files are too large, or missing here
		return n, nil                                 //nolint:nilerr // a home needs no more than the names
	}
	for i, e := range entries {
		if h.Reads.Depend(files[i], texts[e.ID]) {
			n.dependsOnInputsOnly, n.cache = false, false
		}
	}
	return n, nil
}

// Home is what setup has made for a commit, while it is in use.
type Home struct {
	Alone bool // setup would make the same on the commit
	dir   string
	lock  *os.File
}

// Dir returns the folder of the home itself.
func (h *Home) Dir() string { return filepath.Join(h.dir, homeFolder) }

// Tree returns the folder with the files that setup has put into the worktree.
func (h *Home) Tree() string { return filepath.Join(h.dir, treeFolder) }

// Made lists the content of Tree. ok is false if it is not kept, older than Life, or from before the machine's last start.
func (h *Home) Made() (made []string, ok bool, err error) { return readMade(h.dir) }

// Done ends the use of the home.
func (h *Home) Done() { _ = h.lock.Close() }

// Use returns what setup has made for a commit or, as a cache, for the commit that it builds on; nil: there is nothing. With
// strict, a home that may be more than a cache, for example with installed packages, is not used for a commit that changes files
// that setup reads.
func (h *Store) Use(ctx context.Context, commit, from string, strict bool) *Home {
	n, err := h.name(ctx, commit, from)
	if err != nil || n.name == "" {
		return nil
	}
	w := h.open(ctx, n)
	if w != nil || from == "" || from == commit {
		return w
	}
	if n, err = h.name(ctx, from, ""); err != nil || strict && !n.cache {
		return nil
	}
	n.dependsOnInputsOnly = false
	return h.open(ctx, n)
}

func (h *Store) open(ctx context.Context, n homeName) *Home {
	dir := filepath.Join(h.Dir, n.name)
	if _, err := os.Lstat(dir); err != nil {
		return nil
	}
	lock, err := h.lock(ctx, n.name, filelock.TryShared)
	if err != nil {
		return nil // it is being removed
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil { // it has been removed
		_ = lock.Close()
		return nil
	}
	return &Home{Alone: n.dependsOnInputsOnly, dir: dir, lock: lock}
}

// lock locks a home. It waits only for a moment.
func (h *Store) lock(ctx context.Context, name string, try func(*os.File) (bool, error)) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(h.Dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// A child process holds all open files, and with them their locks, from its fork until its exec.
	for range lockTries {
		locked, err := try(f)
		if locked {
			return f, nil
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPause):
		}
	}
	return nil, errors.Join(errors.New("somebody else holds the lock"), f.Close())
}

const (
	lockTries = 50
	lockPause = 5 * time.Millisecond
)

// Filling is a home that setup is filling.
type Filling struct {
	h     *Store
	name  string
	kind  string // everything that the home depends on, except the base's files
	Alone bool   // the files that setup puts into the worktree may be kept, too
	dir   string
	lock  *os.File
}

// Dir returns the folder with everything that is to be kept.
func (f *Filling) Dir() string { return f.dir }

// Home returns the home that setup fills.
func (f *Filling) Home() string { return filepath.Join(f.dir, homeFolder) }

// Fill begins a home for a base. It returns nil if there is one already, or if another process uses or fills it.
func (h *Store) Fill(ctx context.Context, commit string) (*Filling, error) {
	if h == nil || h.MaxBytes <= 0 {
		return nil, nil
	}
	n, err := h.name(ctx, commit, "")
	if err != nil || n.name == "" {
		return nil, err
	}
	if len(n.unknown) > 0 && len(h.Inputs) > 0 {
		h.Log.Warn("setup will run in every worktree: inputs are missing, links or submodules", "inputs", n.unknown, "commit", commit)
	}
	name := n.name
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := h.lock(ctx, name, filelock.Try)
	if err != nil {
		return nil, nil //nolint:nilerr // somebody uses or fills it
	}
	f := &Filling{h: h, name: name, kind: h.kind(ctx), Alone: n.dependsOnInputsOnly, dir: filepath.Join(h.Dir, name+".new"), lock: lock}
	if _, err = os.Lstat(filepath.Join(h.Dir, name)); err == nil {
		if !n.dependsOnInputsOnly || !isOld(filepath.Join(h.Dir, name)) {
			return nil, lock.Close()
		}
		err = h.remove(name, name)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, disk.RemoveAll(f.dir)) // left by a crash
	if err == nil {
		err = os.MkdirAll(filepath.Join(f.dir, homeFolder), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, kindFile), []byte(f.kind), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// End keeps or drops the home.
func (f *Filling) End(ctx context.Context, keep bool) {
	if f == nil {
		return
	}
	var err error
	if keep = keep && disk.Measure(ctx, f.h.Dir, f.dir).Bytes <= f.h.MaxBytes; keep {
		now := time.Now() // so that it is removed last
		err = errors.Join(os.Chtimes(f.dir, now, now), os.Rename(f.dir, filepath.Join(f.h.Dir, f.name)))
	} else {
		err = disk.RemoveAll(f.dir)
	}
	if err := errors.Join(err, f.lock.Close()); err != nil {
		f.h.Log.Warn("keep the home that setup has filled", "error", err)
	}
	if keep {
		f.h.Prune(ctx, f.h.MaxBytes)
	}
}

// Kept returns the name of the home that setup on a commit has left; empty: there is none.
func (h *Store) Kept(ctx context.Context, commit string) string {
	if h == nil || h.MaxBytes <= 0 {
		return ""
	}
	if n, err := h.name(ctx, commit, ""); err == nil && n.name != "" && h.Has(n.name) {
		return n.name
	}
	return ""
}

// Has reports whether there is such a home. It is true if homes are not kept any more.
func (h *Store) Has(name string) bool {
	if h == nil || h.MaxBytes <= 0 {
		return true
	}
	_, err := os.Lstat(filepath.Join(h.Dir, filepath.Base(name)))
	return err == nil
}
