package checks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// planting adds canaries (tests that must fail) to the commits one at a time: code that ends the process early hides only the
// tests that run with it.
type planting struct {
	w           *Watcher
	git         git.Runner
	fork        string // the commit from which the branch starts
	forkPasses  bool   // fork is known to pass
	checkout    workspace.Checkout
	ownCanaries []config.Canary
	say         func(string)
	files       []diff.File         // changed by the commits
	again       workspace.GateRerun // runs the gate in the sandbox in which the commits passed; nil: each canary gets a new sandbox
}

// plant records which canaries the gate notices. If the gate misses a canary, plant also adds it to the fork: if the gate misses
// it there, too, no check of this repository runs such tests.
func (p planting) plant(ctx context.Context, out *journal.Watch) error {
	canaries, err := p.canaries(ctx, out)
	if err != nil {
		return err
	}
	for i, c := range p.ownCanaries {
		canaries = slices.Insert(canaries, i, ecosystem.Canary{Ecosystem: "own", Path: c.Path, Content: c.Content})
	}
	p.announce(canaries)
	announced := false
	for _, c := range canaries {
		place := placeOf(c)
		if p.w.isOverlooked(p.fork, place) {
			out.Unnoticed = c.Path
			continue
		}
		noticed, err := p.noticed(ctx, c)
		if err != nil {
			return err
		}
		if !noticed {
			if !announced {
				p.say("the gate does not notice the canary; it runs with it on the base, too")
			}
			announced = true
			before, err := p.noticedOnFork(ctx, c)
			if err != nil {
				return err
			}
			if !before {
				p.w.noteOverlooked(p.fork, place)
				out.Unnoticed = c.Path
				continue
			}
		}
		out.Canaries = append(out.Canaries, journal.Canary{Path: c.Path, Noticed: noticed})
		if !noticed {
			return nil // one is enough
		}
	}
	if announced {
		p.say("the gate does not notice it on the base either")
	}
	if len(out.Canaries) > 0 {
		p.say("the gate fails with " + plural.Of(len(out.Canaries), "canary") + ", as it should")
	}
	return nil
}

// announce names the canaries that will be planted, in one line: the names differ by a few letters only.
func (p planting) announce(canaries []ecosystem.Canary) {
	var paths []string
	for _, c := range canaries {
		if !p.w.isOverlooked(p.fork, placeOf(c)) {
			paths = append(paths, c.Path)
		}
	}
	switch {
	case len(paths) == 1:
		p.say("the gate runs once more, with a canary, a test that must fail: " + paths[0])
	case len(paths) > 1:
		p.say(fmt.Sprintf("the gate runs once more with each of %d canaries, tests that must fail: %s", len(paths), strings.Join(paths, ", ")))
	}
}

// placeOf names the ecosystem and the folder of a canary.
func placeOf(c ecosystem.Canary) string { return c.Ecosystem + " " + path.Dir(c.Path) }

// isOverlooked reports whether the gate is known to miss every canary in a folder of a base.
func (w *Watcher) isOverlooked(fork, place string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unnoticed[fork][place]
}

// noteOverlooked notes that the gate misses canaries there. It forgets other bases: most runs share one.
func (w *Watcher) noteOverlooked(fork, place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unnoticed[fork] == nil {
		w.unnoticed = map[string]map[string]bool{fork: {}}
	}
	w.unnoticed[fork][place] = true
}

// noticed reports whether the gate fails on the commits with the canary.
func (p planting) noticed(ctx context.Context, c ecosystem.Canary) (bool, error) {
	if p.again == nil {
		v, err := p.runWithCanary(ctx, p.checkout.Base.Commit, c, p.checkout.Checks.Gate, nil)
		return err == nil && !v.Passed(), err
	}
	checks, err := p.again(ctx, c.Path, c.Content)
	return err == nil && !loop.AllPassed(checks), err
}

// noticedOnFork reports whether the gate fails on the fork because of the canary. If the fork is not known to pass without it,
// the output of a failing line has to name the canary. If it does not, the lines after it are tried, too.
func (p planting) noticedOnFork(ctx context.Context, c ecosystem.Canary) (bool, error) {
	for gate := p.checkout.Checks.Gate; len(gate) > 0; {
		named := &finder{want: []byte(strings.ToLower(cmp.Or(c.Mark, path.Base(c.Path))))}
		v, err := p.runWithCanary(ctx, p.fork, c, gate, named)
		switch {
		case err != nil || v.Passed():
			return false, err
		case p.forkPasses || named.found:
			return true, nil
		case v.Setup:
			return false, nil
		}
		gate = gate[len(v.Checks):]
	}
	return false, nil
}

// runWithCanary runs lines of the gate on a commit with the canary added. named, which may be nil, reads all output.
func (p planting) runWithCanary(ctx context.Context, on string, c ecosystem.Canary, gate []loop.Command, named *finder) (*journal.Verification, error) {
	commit, err := diff.Commit(ctx, p.git, on, []diff.Edit{{Path: c.Path, Content: c.Content}}, "A test that must fail\n")
	if err != nil {
		return nil, err
	}
	checkout := p.checkout
	checkout.Checks.Gate = gate
	return p.w.run(ctx, checkout, commit, "canary", named)
}

// finder searches its input for a word in lower case. It belongs to one gate, whose lines run one after the other.
type finder struct {
	want  []byte
	last  []byte // the end of the input, shorter than want
	found bool
}

func (f *finder) Write(p []byte) (int, error) {
	text := append(f.last, bytes.ToLower(p)...)
	f.found = f.found || bytes.Contains(text, f.want)
	f.last = bytes.Clone(text[max(0, len(text)-len(f.want)+1):])
	return len(p), nil
}

// Close does nothing: the next line of the gate writes more.
func (f *finder) Close() error { return nil }

// canaries returns the tests to plant: more than one if the checks themselves have changed.
func (p planting) canaries(ctx context.Context, out *journal.Watch) ([]ecosystem.Canary, error) {
	at := suite.Planting{Most: 1, Suffix: strings.ToLower(rand.Text()[:10])}
	if len(out.Files)+len(out.Findings) > 0 {
		at.Most = 3
	}
	entries, err := diff.List(ctx, p.git, p.fork)
	if err != nil {
		return nil, err
	}
	for _, f := range p.files {
		at.Near = append(at.Near, f.Path)
		if f.New.Exists() {
			entries[f.Path] = f.New
		}
	}
	at.Files = slices.Sorted(maps.Keys(entries))
	at.Read = func(path string) ([]byte, error) {
		texts, err := diff.Texts(ctx, p.git, []diff.Entry{entries[path]}, textLimit())
		return texts[entries[path].ID], err
	}
	return suite.Canaries(at), ctx.Err()
}
