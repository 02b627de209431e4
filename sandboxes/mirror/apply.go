package mirror

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Apply makes the host's folder what the sandbox lists, as far as that may be taken. What the host has changed since both
// sides were the same stays. fetch is called once, with the paths of the files whose content is needed, if there are
// any: it returns a stream of Pack, which Apply closes. An error means that the folder holds some of the changes and may
// be applied to again; Left says what was refused.
func (t *Tree) Apply(ctx context.Context, listed []Entry, fetch func(paths []string) (io.ReadCloser, error)) (left Left, err error) {
	before, err := t.list()
	if err != nil {
		return left, err
	}
	a := &application{
		tree: t, limits: t.Limits.withDefaults(), left: &left, old: byPath(before),
		seen: make(map[string]Entry, len(listed)), need: make(map[string]Entry), stays: make(map[string]bool),
		ours: make(map[string]bool),
	}
	a.findOurs()
	for _, e := range listed {
		a.judge(e)
	}
	if err := a.prune(before); err != nil {
		return left, err
	}
	if err := a.shape(listed); err != nil {
		return left, err
	}
	if err := a.content(ctx, fetch); err != nil {
		return left, err
	}
	return left, a.settle(listed)
}

// application is one Apply.
type application struct {
	tree   *Tree
	limits Limits
	left   *Left
	bytes  int64
	old    map[string]Entry // what the host has
	ours   map[string]bool  // what the host has changed and not sent yet
	seen   map[string]Entry // what is accepted
	need   map[string]Entry // files whose content is still to come
	stays  map[string]bool  // not accepted, but the host's own is kept
}

// findOurs finds what the host has changed, made or removed since both sides were the same.
func (a *application) findOurs() {
	if a.tree.host == nil {
		return
	}
	for p, e := range a.old {
		if was, ok := a.tree.host[p]; !ok || was != e {
			a.ours[p] = true
			a.keep(p)
		}
	}
	for p := range a.tree.host {
		if _, ok := a.old[p]; !ok {
			a.ours[p] = true
		}
	}
}

// keep lets the host's own stay, with the folders that it is in.
func (a *application) keep(p string) {
	for ; p != "." && !a.stays[p]; p = path.Dir(p) {
		a.stays[p] = true
	}
}

// judge accepts an entry or leaves it out.
func (a *application) judge(e Entry) {
	if Skipping(a.tree.Skip)(e.Path) && checkPath(e.Path) == nil || a.ours[e.Path] {
		return
	}
	old := a.old[e.Path]
	if err := a.check(e, old); err != nil {
		a.left.add(e.Path, err)
		return
	}
	a.seen[e.Path] = e
	switch e.Kind {
	case File:
		a.bytes += e.Size
		if mark := a.tree.inside[e.Path]; old.Kind != File || mark == "" || mark != e.Mark || old.Size != e.Size {
			a.need[e.Path] = e
		}
	case Folder:
		if e.Mark == closed {
			a.left.add(e.Path, errors.New("the folder cannot be read"))
			a.keep(e.Path)
		}
	case Link:
	}
}

// check says why an entry cannot be taken.
func (a *application) check(e, old Entry) error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	if dir := path.Dir(e.Path); dir != "." && a.seen[dir].Kind != Folder {
		return errors.New("its folder is not taken")
	}
	if _, twice := a.seen[e.Path]; twice {
		return errors.New("it is listed twice")
	}
	if len(a.seen) == a.limits.Entries {
		return fmt.Errorf("there are more than %d files and folders", a.limits.Entries)
	}
	switch {
	case e.Kind == Link && old.Kind == Link && old.Target == e.Target:
		return nil // as it was
	case e.Kind == Link && !a.tree.Links:
		return errors.New("links are not taken here")
	case e.Kind == Link:
		return checkTarget(e.Path, e.Target)
	case e.Kind == File && (e.Size > a.limits.File || e.Size > a.limits.Bytes-a.bytes):
		if old.Kind == File {
			a.keep(e.Path) // or it would look removed
		}
		return fmt.Errorf("it has %d bytes, and what may be taken is %d of one file and %d of all", e.Size, a.limits.File, a.limits.Bytes)
	}
	return nil
}

// prune removes what the sandbox no longer has, and what is of another kind there.
func (a *application) prune(before []Entry) error {
	for _, e := range slices.Backward(before) { // children first
		now, ok := a.seen[e.Path]
		if ok && now.Kind == e.Kind || a.stays[e.Path] || a.isClosed(e.Path) {
			if ok && now.Kind != e.Kind {
				a.drop(e, "what the host has there stays")
			}
			continue
		}
		err := a.tree.Root.Remove(e.Path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if e.Kind != Folder {
			return err
		}
		// It holds what neither side tells about, such as a git directory.
		a.keep(e.Path)
		if ok {
			a.drop(e, "a folder of the host is in its place")
		}
	}
	return nil
}

// isClosed reports a path in a folder that the sandbox cannot look into: its files may still be there.
func (a *application) isClosed(p string) bool {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if e := a.seen[p]; e.Kind == Folder && e.Mark == closed {
			return true
		}
	}
	return false
}

// drop takes back what was accepted in the place of the host's own, with all below it.
func (a *application) drop(old Entry, why string) {
	a.left.add(old.Path, errors.New(why))
	for p := range a.seen {
		if p == old.Path || strings.HasPrefix(p, old.Path+"/") {
			delete(a.seen, p)
			delete(a.need, p)
		}
	}
}

// shape makes folders and links, and sets modes.
func (a *application) shape(listed []Entry) error {
	root := a.tree.Root
	for _, e := range listed {
		if a.seen[e.Path] != e {
			continue
		}
		old := a.old[e.Path]
		var err error
		switch {
		case e.Kind == Folder && (old.Kind != Folder || old.Mode != e.Mode|0o700):
			err = makeFolder(root, e.Path, e.Mode)
		case e.Kind == Link && (old.Kind != Link || old.Target != e.Target):
			err = makeLink(root, e.Path, e.Target)
		case e.Kind == File && old.Kind == File && old.Mode != e.Mode|0o600:
			if _, comes := a.need[e.Path]; !comes {
				err = root.Chmod(e.Path, e.Mode|0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// content takes the files that are needed out of the stream.
func (a *application) content(ctx context.Context, fetch func([]string) (io.ReadCloser, error)) error {
	if len(a.need) == 0 {
		return nil
	}
	paths := make([]string, 0, len(a.need))
	for p := range a.need {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	stream, err := fetch(paths)
	if err != nil {
		return err
	}
	if err := errors.Join(a.read(ctx, stream, len(paths)), stream.Close()); err != nil {
		return fmt.Errorf("read the sandbox's files: %w", err)
	}
	for p := range a.need {
		a.left.add(p, errors.New("the sandbox does not give its content"))
	}
	return nil
}

// perFile is how long the head of a file in a stream may be: a name, a time, and what they are packed in.
const perFile = 16 << 10

func (a *application) read(ctx context.Context, stream io.Reader, files int) error {
	limited := &io.LimitedReader{R: stream, N: a.limits.Bytes + int64(files)*perFile + 1<<20}
	in := tar.NewReader(limited)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = a.take(h, in)
		}
		if err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, limited) // to the stream's own end, which tells how the sandbox fared
	if err == nil && limited.N <= 0 {
		err = errors.New("they do not end")
	}
	return err
}

// take writes one file of the stream. It must be one that was asked for, and no larger than may be taken. Its time is
// now: a time that the sandbox chooses could hide from git that a file has changed.
func (a *application) take(h *tar.Header, in io.Reader) error {
	e, asked := a.need[h.Name]
	if !asked || h.Typeflag != tar.TypeReg || h.Size < 0 {
		return fmt.Errorf("%q comes unasked", clip(h.Name))
	}
	delete(a.need, h.Name)
	if h.Size > a.limits.File || h.Size-e.Size > a.limits.Bytes-a.bytes {
		a.left.add(e.Path, errors.New("it has grown beyond what may be taken"))
		delete(a.seen, e.Path)
		return nil
	}
	a.bytes += h.Size - e.Size
	if h.Size != e.Size {
		a.seen[e.Path] = Entry{} // not what was listed: it comes again the next time
	}
	return writeFile(a.tree.Root, e.Path, in, h.Size, e.Mode, time.Time{})
}

// settle notes that both sides are the same now, but for what the host has still to send.
func (a *application) settle(listed []Entry) error {
	now, err := a.tree.list()
	if err != nil {
		return err
	}
	host, was := byPath(now), a.tree.host
	for p := range a.ours {
		if e, ok := was[p]; ok {
			host[p] = e
		} else {
			delete(host, p)
		}
	}
	inside := make(map[string]string, len(listed))
	for _, e := range listed {
		if _, missing := a.need[e.Path]; !missing && e.Kind == File && a.seen[e.Path] == e && e.Mark != "" {
			inside[e.Path] = e.Mark
		}
	}
	a.tree.host, a.tree.inside = host, inside
	return nil
}
