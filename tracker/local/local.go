// Package local implements the tracker for a folder of Markdown files, one per issue: a backlog without a server.
//
// A file may begin with front matter, YAML between two lines "---", with any of these keys; others are the user's:
//
//	title: Fix the login           # else the first heading, else the file's name
//	labels: [no-human, bug]        # a list, or a text with commas
//	state: open                    # open (default) or closed
//	priority: 1                    # smaller is more urgent; none comes last
//	blocked_by: [other-issue]      # keys or file names, with or without .md
//	touches: [src/api/**]          # paths and patterns of what will change
//	author: ada
//	assignee: grace                # or assignees, a list
//	milestone: v1
//	created: 2026-01-31            # or RFC 3339
//
// The rest is the issue, up to the marker line below which ralph writes its reports. Everything that a person wrote stays
// byte for byte: values are edited in place, and a value that cannot be edited safely is an error with file and line.
// Folders, README.md, and files whose names begin with a dot or do not end in .md are not issues. Links are never followed.
//
// Everybody who can write to the folder is trusted, as with the code beside it. A Tracker is safe for concurrent use,
// and several processes may share a folder: a lock file makes them wait for each other, and they keep concurrent edits by
// a person.
package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker"
)

// Name is the registered name.
const Name = "local"

// DefaultDir is the default folder of the backlog in a repository.
const DefaultDir = ".ralph/backlog"

// Config is a local tracker's configuration.
type Config struct {
	// Dir is the folder of the issue files; required. It need not exist yet.
	Dir string
	// LockDir is the folder of the lock file, the same for every ralph that shares Dir; created if it is missing. If empty,
	// the lock is a hidden file in Dir.
	LockDir string
	// Assignee and Milestone restrict the backlog to issues with that assignee and milestone, ignoring case; empty means any.
	Assignee, Milestone string
	// Log is for operators; nil discards messages.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Tracker is a folder of issue files. Make one with New.
type Tracker struct {
	cfg Config
	dir string // absolute
	// editable holds the files of the last listing whose labels can be edited, since trying takes longer than reading.
	editable atomic.Pointer[map[[sha256.Size]byte]bool]
}

var _ tracker.Tracker = (*Tracker)(nil)

// New returns the tracker of a folder. It accesses no file.
func New(cfg Config) (*Tracker, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dir == "" {
		return nil, errors.New("local tracker: no folder given")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("local tracker: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Tracker{cfg: cfg, dir: dir}, nil
}

// Name returns "local".
func (t *Tracker) Name() string { return Name }

// entry is one file of the folder, parsed.
type entry struct {
	name         string
	key          string
	file         file
	updated      time.Time
	err          error              // not nil: a problem
	gone         bool               // removed while the folder was read
	editableHash *[sha256.Size]byte // hash of file and query labels, if the labels can be edited; nil: not tried
}

// List reads every issue file and returns all open issues, whatever their labels, in the order of their file names. Problems
// are files that cannot be read, files with the key of another, files that match the query but whose labels cannot be edited,
// missing blockers, and fields whose names resemble known ones. With the last two the issue is listed, too; a missing blocker
// blocks it.
func (t *Tracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	root, err := t.open(ctx)
	if err != nil {
		return tracker.Listing{}, err
	}
	defer root.Close()
	files, temps, err := names(root)
	if err != nil {
		return tracker.Listing{}, err
	}
	t.removeStale(root, temps)
	entries, err := t.readAll(ctx, root, files, q)
	if err != nil {
		return tracker.Listing{}, err
	}
	states := make(map[string]blockerState, len(entries))
	for _, e := range entries {
		states[e.key] = e.blockerState()
	}
	var out tracker.Listing
	for _, e := range entries {
		if e.err != nil {
			out.Problems = append(out.Problems, t.problem(e))
			continue
		}
		if !e.file.open || !t.matchesSettings(e.file.header) {
			continue
		}
		out.Issues = append(out.Issues, t.issue(e, func(key string) blockerState { return states[key] }))
		for _, s := range e.file.front.fieldErrors() {
			out.Problems = append(out.Problems, tracker.Problem{Where: t.location(e.name, lineIn(s)), Err: s, Kept: true})
		}
		for _, ref := range e.file.blockedBy {
			if states[tracker.Key(ref.name)] == blockerMissing {
				out.Problems = append(out.Problems, tracker.Problem{
					Where: t.location(e.name, ref.line),
					Err:   fmt.Errorf("blocked_by %q is not an issue, so this one stays blocked; correct the name or remove it", ref.name),
				})
			}
		}
	}
	return out, nil
}

// Get reads the current state of one issue. The error for a broken file is a tracker.Problem.
func (t *Tracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	root, err := t.open(ctx)
	if err != nil {
		return tracker.Issue{}, err
	}
	defer root.Close()
	name, err := find(root, key)
	if err != nil {
		return tracker.Issue{}, err
	}
	e := t.read(root, name)
	switch {
	case e.gone:
		return tracker.Issue{}, notFound(key)
	case e.err != nil:
		return tracker.Issue{}, t.problem(e)
	}
	return t.issue(e, func(key string) blockerState {
		name, err := find(root, key)
		if err != nil {
			return blockerMissing
		}
		b := t.read(root, name)
		return b.blockerState()
	}), nil
}

// blockerState is the state of an issue that blocks another.
type blockerState int

const (
	blockerMissing blockerState = iota
	blockerOpen                 // or broken
	blockerClosed
)

func (e entry) blockerState() blockerState {
	switch {
	case e.gone:
		return blockerMissing
	case e.err == nil && !e.file.open:
		return blockerClosed
	}
	return blockerOpen
}

// readAll reads the files concurrently; the result has their order, without deleted ones. If two files have the same key, the
// first is the issue.
func (t *Tracker) readAll(ctx context.Context, root *os.Root, files []string, q tracker.Query) ([]entry, error) {
	var known map[[sha256.Size]byte]bool
	if last := t.editable.Load(); last != nil {
		known = *last
	}
	all, err := fanout.Map(ctx, files, func(ctx context.Context, name string) (entry, error) {
		if ctx.Err() != nil {
			return entry{}, context.Cause(ctx)
		}
		e := t.read(root, name)
		e.tryLabels(q, known)
		return e, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t.cfg.Dir, err)
	}
	tried := make(map[[sha256.Size]byte]bool, len(all))
	for _, e := range all {
		if e.editableHash != nil {
			tried[*e.editableHash] = true
		}
	}
	t.editable.Store(&tried)
	kept := all[:0]
	first := make(map[string]string, len(all))
	for _, e := range all {
		if e.gone {
			continue
		}
		if other, taken := first[e.key]; taken {
			e.err = fmt.Errorf("has the same key (%s) as %s; rename one of them", e.key, other)
			e.key = ""
		} else {
			first[e.key] = e.name
		}
		kept = append(kept, e)
	}
	return kept, nil
}

// read parses one file. The entry has the error.
func (t *Tracker) read(root *os.Root, name string) entry {
	e := entry{name: name, key: tracker.Key(stem(name))}
	if !isIssue(name) {
		e.err = errorAt(1, "its name does not end in .md, in lower case; rename it")
		return e
	}
	raw, info, err := readFile(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.gone = true
		return e
	case err != nil:
		e.err = err
		return e
	}
	e.updated = info.ModTime()
	e.file, e.err = parse(raw)
	return e
}

// tryLabels tries to edit the labels of an issue that matches the query, and makes it a problem if that fails: otherwise the
// failure would show only after the work was paid for. It skips files in known.
func (e *entry) tryLabels(q tracker.Query, known map[[sha256.Size]byte]bool) {
	lacks := func(l string) bool { return indexLabel(e.file.labels, l) < 0 }
	if e.gone || e.err != nil || !e.file.open || len(q.Labels) == 0 || slices.ContainsFunc(q.Labels, lacks) || !q.NeedsBlockers(e.file.labels) {
		return
	}
	sum := sha256.Sum256(append([]byte(strings.Join(q.Labels, "\x00")+"\x00"), e.file.doc.raw...))
	if !known[sum] {
		_, e.err = applyToFile(e.file, tracker.Change{RemoveLabels: q.Labels, AddLabels: []string{"ralph-tries-a-label"}})
	}
	if e.err == nil {
		e.editableHash = &sum
	}
}

func (t *Tracker) issue(e entry, state func(key string) blockerState) tracker.Issue {
	i := tracker.Issue{
		Key: e.key, ID: e.name, URL: filepath.Join(t.cfg.Dir, e.name),
		Title: e.file.issueTitle(e.name), Body: e.file.doc.text(), Author: e.file.author, Raw: true,
		Labels: e.file.labels, Open: e.file.open, Priority: e.file.priority,
		Created: e.file.created, Updated: e.updated, Reported: new(string), Touches: e.file.touches,
	}
	last, _ := lastReport(e.file.doc)
	*i.Reported = last.run
	for _, ref := range e.file.blockedBy {
		key := tracker.Key(ref.name)
		i.BlockedBy = append(i.BlockedBy, tracker.Blocker{Key: key, Open: state(key) != blockerClosed})
	}
	return i
}

func (t *Tracker) problem(e entry) tracker.Problem {
	return tracker.Problem{Where: t.location(e.name, lineIn(e.err)), Err: e.err}
}

// location formats a line of a file like editors and compilers.
func (t *Tracker) location(name string, line int) string {
	return fmt.Sprintf("%s:%d", filepath.Join(t.cfg.Dir, name), line)
}

// matchesSettings applies the filters of the configuration.
func (t *Tracker) matchesSettings(h header) bool {
	mine := func(name string) bool { return strings.EqualFold(name, t.cfg.Assignee) }
	return (t.cfg.Assignee == "" || slices.ContainsFunc(h.assignees, mine)) &&
		(t.cfg.Milestone == "" || strings.EqualFold(h.milestone, t.cfg.Milestone))
}
