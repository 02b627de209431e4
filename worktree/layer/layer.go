// Package layer makes the files of private trees from layers. Its caller is package worktree. A layer is a checkout of a
// base commit with its index. Several trees share it as the read-only lower folder of an overlay; a tree's own folder, the
// upper one, has only the files that differ. Git makes a layer from a commit of the user's base, and nobody changes it once
// it has its final name.
//
// The package is safe for concurrent use, across processes.
package layer

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Stores describes the layers of one repository.
type Stores struct {
	Dir      string // folder of all layers
	Temp     string // folder on the same file system
	Lock     string // path of a lock file; another one is beside it
	MaxBytes int64  // bytes of all layers above which unused ones are removed
	MinFiles int    // number of files from which a repository gets layers; 0: 2,000
	Used     func() (map[string]bool, error)
	Log      *slog.Logger
}

// defaultMinFiles is the default of Stores.MinFiles. With fewer files a plain checkout costs no more. Its folders can also
// be renamed, unlike those of a lower folder.
const defaultMinFiles = 2000

// Checkout describes the tree to make.
type Checkout struct {
	Git        git.Runner // pinned to the repository and to Dir
	Config     git.Config
	ContentKey string // everything besides the commit that affects file contents
	Trusted    string // commit of the user's base; empty: no layer is used
	Commit     string
	Dir        string // upper folder, which is empty
	Index      string // path of the tree's index, which is written last
	// CheckLayers returns an error with the reason if the sandbox cannot show layers.
	CheckLayers func(ctx context.Context) error
	// RecordUse durably records that the tree uses the layer.
	RecordUse func(name string) error
}

// IsName reports whether name is one of a layer: a commit, and a digest of everything else that affects file contents.
func IsName(name string) bool {
	commit, digest, _ := strings.Cut(name, "-")
	_, err := hex.DecodeString(digest)
	return git.IsObject(commit) && len(digest) == digestLen && err == nil
}

const digestLen = 16

// layerName returns the name of a commit's layer. It changes with every boot of the machine, because a power loss may damage
// files.
func (c Checkout) layerName(commit string) string {
	sum := sha256.Sum256([]byte(Boot() + "\n" + c.ContentKey))
	return commit + "-" + hex.EncodeToString(sum[:])[:digestLen]
}

// Tree returns the folder with the files of a layer.
func (s Stores) Tree(name string) string { return filepath.Join(s.Dir, name, "tree") }

func (s Stores) index(name string) string { return filepath.Join(s.Dir, name, "index") }

// MakeUpper makes upper folder and index of a tree. ok is false, and nothing is made, if a plain checkout is better.
func (s Stores) MakeUpper(ctx context.Context, c Checkout) (ok bool, err error) {
	if c.Trusted == "" || s.MaxBytes <= 0 {
		return false, nil
	}
	if len(s.list()) == 0 {
		if large, err := s.isLarge(ctx, c); !large || err != nil {
			return false, err
		}
	}
	if can := c.CheckLayers(ctx) == nil; !can {
		return false, nil
	}
	b, err := s.acquire(ctx, c, "")
	if err == nil && b == nil {
		b, err = s.makeLayer(ctx, c)
	}
	if err != nil || b == nil {
		return false, err
	}
	return true, s.writeUpper(ctx, c, *b)
}

// isLarge reports whether the base has enough files to make layers worthwhile.
func (s Stores) isLarge(ctx context.Context, c Checkout) (bool, error) {
	files, err := c.Git.Files(ctx, c.Trusted)
	return strings.Count(files, "\x00") >= cmp.Or(s.MinFiles, defaultMinFiles), err
}

// lowerLayer is the layer below a tree, with the differences of the tree's commit.
type lowerLayer struct {
	name    string
	changes []change
}

// acquire picks a layer for a tree and records that the tree uses it; nil if there is none. If made is not empty, it is the
// path of a new layer, which acquire first renames to its final name.
func (s Stores) acquire(ctx context.Context, c Checkout, made string) (*lowerLayer, error) {
	unlock, err := filelock.Lock(ctx, s.Lock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if made != "" {
		if err := os.Rename(made, filepath.Join(s.Dir, c.layerName(c.Trusted))); err != nil {
			return nil, err
		}
	}
	b, err := s.find(ctx, c)
	if b == nil || err != nil {
		return nil, err
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(s.Dir, b.name), now, now); err != nil {
		return nil, err
	}
	return b, c.RecordUse(b.name)
}

// maxCandidates is the number of layers that are compared with the commit.
const maxCandidates = 3

func (s Stores) find(ctx context.Context, c Checkout) (*lowerLayer, error) {
	digest := strings.TrimPrefix(c.layerName(""), "-")
	var names []string
	for _, l := range s.list() {
		if strings.HasSuffix(l.Name(), "-"+digest) {
			names = append(names, l.Name())
		}
	}
	exact := []string{c.layerName(c.Commit), c.layerName(c.Trusted)}
	slices.SortStableFunc(names, func(a, b string) int { return rank(exact, a) - rank(exact, b) })
	for _, name := range names[:min(len(names), maxCandidates)] {
		commit, _, _ := strings.Cut(name, "-")
		changes, similar, err := c.changesFrom(ctx, commit, s.index(name))
		if err != nil {
			return nil, err
		}
		if similar {
			return &lowerLayer{name, changes}, nil
		}
	}
	return nil, nil
}

func rank(first []string, name string) int {
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}

// list lists the layers, last used first.
func (s Stores) list() []fs.FileInfo { return disk.Newest(s.Dir, IsName) }

// makeLayer makes the layer of the base for a tree; nil if the tree differs too much from the base. Trees of the same base
// wait for the first one.
func (s Stores) makeLayer(ctx context.Context, c Checkout) (b *lowerLayer, err error) {
	unlock, err := filelock.Lock(ctx, s.Lock+"-make")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if b, err := s.acquire(ctx, c, ""); b != nil || err != nil {
		return b, err
	}
	if _, similar, err := c.changesFrom(ctx, c.Trusted, ""); !similar || err != nil {
		return nil, err
	}
	temp := filepath.Join(s.Temp, "layer-"+rand.Text())
	err = s.checkOutBase(ctx, c, temp)
	if err == nil {
		b, err = s.acquire(ctx, c, temp)
	}
	if err != nil {
		return nil, errors.Join(err, disk.RemoveAll(temp))
	}
	if err := s.Prune(ctx, s.MaxBytes); err != nil { // no reason to fail the run
		s.Log.WarnContext(ctx, "checkouts that are used no more are not removed", "error", err)
	}
	return b, nil
}

func (s Stores) checkOutBase(ctx context.Context, c Checkout, temp string) error {
	tree := filepath.Join(temp, "tree")
	if err := errors.Join(os.MkdirAll(s.Dir, 0o700), os.MkdirAll(tree, 0o700)); err != nil {
		return err
	}
	g := c.Git.With("GIT_WORK_TREE=" + tree)
	return g.CheckOut(ctx, c.Config, filepath.Join(temp, "index"), c.Trusted, c.Trusted)
}

// Prune removes unused layers, least recently used first, until all layers together take at most the given number of bytes.
func (s Stores) Prune(ctx context.Context, most int64) error {
	moved, err := s.moveUnused(ctx, most)
	for _, dir := range moved {
		err = errors.Join(err, disk.RemoveAll(dir))
	}
	return err
}

// moveUnused moves layers away from their names, so that nobody finds a half-removed one, and returns their new paths.
func (s Stores) moveUnused(ctx context.Context, most int64) (moved []string, err error) {
	unlock, err := filelock.Lock(ctx, s.Lock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	used, err := s.Used()
	if err != nil {
		return nil, nil // keep all of them
	}
	var all int64
	for _, l := range s.list() {
		dir := filepath.Join(s.Dir, l.Name())
		if all += disk.Measure(ctx, s.Dir, dir).Bytes; all <= most || used[l.Name()] {
			continue
		}
		to := filepath.Join(s.Temp, "layer-"+rand.Text())
		if err := os.Rename(dir, to); err != nil {
			return moved, err
		}
		moved = append(moved, to)
	}
	return moved, nil
}
