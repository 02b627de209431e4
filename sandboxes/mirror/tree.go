package mirror

import (
	"fmt"
	"os"
	"path"
	"slices"
	"time"
)

// Tree is the host's side of one folder and its copy.
type Tree struct {
	// Root is the host's folder.
	Root *os.Root
	// Skip names paths that neither side tells the other about, with all below them. Git directories are always skipped.
	Skip func(path string) bool
	// Links lets links be taken that stay below the folder.
	Links  bool
	Limits Limits

	host   map[string]Entry  // the host's side, as it was when both were the same; nil: they never were
	inside map[string]string // marks of files inside whose content the host has
}

// Skipping is how either side lists: without git directories, and what more names.
func Skipping(more func(path string) bool) func(path string) bool {
	return func(p string) bool { return isGit(path.Base(p)) || more != nil && more(p) }
}

// list is the host's side now. Nothing hostile writes there, so that a mark can be believed at once.
func (t *Tree) list() ([]Entry, error) {
	all, err := list(t.Root, Skipping(t.Skip), time.Now().Add(time.Hour))
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", t.Root.Name(), err)
	}
	return all, nil
}

// Changed is what the host has changed since both sides were the same: what to pack for the sandbox, parents first, and
// what to remove there before. At first that is everything.
func (t *Tree) Changed() (changed []Entry, gone []string, err error) {
	now, err := t.list()
	if err != nil {
		return nil, nil, err
	}
	there := make(map[string]bool, len(now))
	for _, e := range now {
		there[e.Path] = true
		if was, ok := t.host[e.Path]; !ok || was != e {
			changed = append(changed, e)
		}
	}
	for p := range t.host {
		if _, inFolder := t.host[path.Dir(p)]; !there[p] && (there[path.Dir(p)] || !inFolder) {
			gone = append(gone, p)
		}
	}
	slices.Sort(gone)
	return changed, gone, nil
}

// Sent notes that the sandbox has what Changed gave. inside is what it lists then: files that were sent need not come back
// as long as their marks stay. Where something in the sandbox may have changed them meanwhile, inside has to be nil.
func (t *Tree) Sent(changed []Entry, gone []string, inside []Entry) {
	if t.host == nil {
		t.host, t.inside = make(map[string]Entry), make(map[string]string)
	}
	removed := make(map[string]bool, len(gone))
	for _, p := range gone {
		removed[p] = true
	}
	for p := range t.host {
		for at := p; at != "." && len(gone) > 0; at = path.Dir(at) {
			if removed[at] {
				delete(t.host, p)
				delete(t.inside, p)
				break
			}
		}
	}
	sent := make(map[string]bool, len(changed))
	for _, e := range changed {
		t.host[e.Path], sent[e.Path] = e, true
		delete(t.inside, e.Path)
	}
	for _, e := range inside {
		if sent[e.Path] && e.Kind == File && e.Mark != "" && e.Size == t.host[e.Path].Size {
			t.inside[e.Path] = e.Mark
		}
	}
}

func byPath(list []Entry) map[string]Entry {
	m := make(map[string]Entry, len(list))
	for _, e := range list {
		m[e.Path] = e
	}
	return m
}
