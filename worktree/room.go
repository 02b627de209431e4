package worktree

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/internal/disk"
)

// room is how much a hand-back may write: half of what is free where it writes, since what comes in is written twice
// before the first copy goes. Whoever else works on a full disk needs the rest.
func (r *Repo) room() (bytes int64, place string) {
	bytes = math.MaxInt64
	for _, at := range []string{r.opts.StateDir, r.objects.dir} {
		// Where it cannot be told, writing will.
		if free, err := disk.RoomAt(at); err == nil && free.Bytes/2 < bytes {
			bytes, place = max(1, free.Bytes/2), at
		}
	}
	return bytes, place
}

// capsNow are the caps, as far as there is room.
func (r *Repo) capsNow() Caps {
	caps := r.caps
	bytes, _ := r.room()
	caps.Size = min(caps.Size, bytes)
	return caps
}

// whyTooBig adds to an error of what is too big that the disk is the reason, if it is.
func (r *Repo) whyTooBig(err error) error {
	if bytes, place := r.room(); errors.Is(err, errTooBig) && bytes < r.caps.Size {
		return fmt.Errorf("%w (half of what is free in %s, %s, is the most)", err, place, disk.Size(2*bytes))
	}
	return err
}

// withinCaps leaves out files that are too big to be saved, and names the first. Where there is room for some only, the
// smallest are taken: what people and agents write by hand is small.
func (t *Tree) withinCaps(paths []string) (fit []string, err error) {
	caps := t.repo.capsNow()
	if !t.record().Private {
		caps.Blob = math.MaxInt64 // the user's own agent; only the disk is a limit
		caps.Size, _ = t.repo.room()
	}
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	type file struct {
		path string
		size int64
	}
	files := make([]file, 0, len(paths))
	var all int64
	for _, path := range paths {
		f := file{path: path}
		if info, err := root.Lstat(path); err == nil && info.Mode().IsRegular() {
			f.size = info.Size()
		}
		files = append(files, f)
		all += min(f.size, math.MaxInt64-all) // a sparse file can be of any size
	}
	if all > caps.Size {
		slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.size, b.size) })
	}
	var big []string
	var size int64
	for _, f := range files {
		if f.size > caps.Blob || f.size > caps.Size-size {
			big = append(big, f.path)
			continue
		}
		size += f.size
		fit = append(fit, f.path)
	}
	if len(big) > 0 {
		return fit, fmt.Errorf("%d of the uncommitted files are %w, the rest is saved; first: %s",
			len(big), errTooBig, printable(filepath.Join(t.Dir(), slices.Min(big))))
	}
	return fit, nil
}
