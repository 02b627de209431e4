// Package note keeps lines of text about commits as git notes, and shares them with a remote.
//
// Concurrent writers lose nothing: the ref moves by compare-and-swap, here and on the remote, and notes that were written
// apart from each other are joined line by line. What a note says is data, which anybody who may push can have written.
// Everything here is safe for concurrent use, by several processes too.
package note

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/incoming"
)

// Ref is where the notes are. git shows them with: git notes --ref=ralph show COMMIT.
const Ref = "refs/notes/ralph"

// MaxSize is the largest note that is read or written, in bytes.
const MaxSize = 1 << 20

const (
	maxTries   = 100      // of a compare-and-swap: each that fails has seen somebody else's succeed
	maxUnmoved = 3        // pushes that are refused as stale while the ref stays where it was
	maxJoined  = 5000     // notes that one join may bring together
	most       = 64 << 20 // bytes that one fetch may write; a note takes about a thousand
)

// ErrSize means that a note is too large to be read or written.
var ErrSize = fmt.Errorf("the note is larger than %d KiB", MaxSize>>10)

// Store is the notes of one repository.
type Store struct {
	Git     git.Runner // pinned to the repository
	Objects git.Store  // of the repository
	Talk    git.Runner // may talk to the remote
	Remote  string     // its name; empty: there is none
}

// Here is the state of this repository's notes, for [Store.Read]; empty when there are none.
func (s Store) Here(ctx context.Context) (string, error) {
	refs, err := s.Git.Refs(ctx, Ref)
	return refs[Ref], err
}

// There is the state of the remote's notes, and where these other refs are there; both may be empty. The notes are fetched,
// and no ref moves.
func (s Store) There(ctx context.Context, others ...string) (notes string, at map[string]string, err error) {
	if s.Remote == "" {
		return "", nil, nil
	}
	for range maxTries {
		at, err := s.Talk.RemoteRefs(ctx, s.Remote, append([]string{Ref}, others...)...)
		if err != nil || at[Ref] == "" {
			return "", at, err
		}
		err = s.Bring(ctx, at[Ref])
		if err == nil {
			return at[Ref], at, nil
		}
		again, readErr := s.Talk.RemoteRefs(ctx, s.Remote, Ref)
		if readErr != nil || again[Ref] == at[Ref] { // else it has moved on, and its old state may be gone
			return "", nil, errors.Join(err, readErr)
		}
	}
	return "", nil, fmt.Errorf("%w: %s changes faster than it can be fetched", git.ErrRemote, Ref)
}

// Bring fetches a commit that a ref of the remote is at, unless all of it is here: another process that fetches it just now
// may have stored the commit and not yet its files. No ref moves.
func (s Store) Bring(ctx context.Context, commit string) error {
	if !git.IsObject(commit) {
		return fmt.Errorf("%q is not the full name of an object", commit)
	}
	here, err := s.Git.Yes(ctx, "rev-list", "--objects", "--quiet", commit, "--not", "--all")
	if here || err != nil && !git.Failed(err) {
		return err
	}
	err = incoming.Fetch(ctx, s.Talk, s.Remote, most, commit)
	if errors.Is(err, incoming.ErrSize) {
		return fmt.Errorf("%s is larger than %s: %w; to fetch it all the same: git fetch %s %s",
			Ref, disk.Size(most), err, s.Remote, commit)
	}
	return err
}

// Read returns the lines of a commit's note in one state of the notes: none when there is no note. It fails with ErrSize.
func (s Store) Read(ctx context.Context, at, commit string) ([]string, error) {
	if at == "" {
		return nil, nil
	}
	if !git.IsObject(commit) || !git.IsObject(at) {
		return nil, fmt.Errorf("%q and %q have to be full names of objects", at, commit)
	}
	var names []string
	for fan := 0; fan <= 3; fan++ { // git spreads many notes over folders
		names = append(names, at+":"+fanned(commit, fan))
	}
	var text []string
	left := int64(MaxSize)
	err := s.Git.EachObject(ctx, names, func(o git.Object, content io.Reader) error {
		if o.Kind != "blob" {
			return nil
		}
		if left -= o.Size; left < 0 {
			return ErrSize
		}
		all, err := io.ReadAll(content)
		text = union(text, lines(string(all)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note on %s: %w", git.Short(commit), err)
	}
	return text, nil
}

// Add adds a line to the commit's note, unless it is there.
func (s Store) Add(ctx context.Context, commit, line string) error {
	for range maxTries {
		old, err := s.Here(ctx)
		if err != nil {
			return err
		}
		tree, err := s.put(ctx, old, commit, []string{line})
		if err != nil || tree == "" {
			return err
		}
		var parents []string
		if old != "" {
			parents = []string{old}
		}
		commit, err := s.Objects.Commit(tree, parents, "note on "+commit, time.Now())
		if err != nil {
			return err
		}
		if err = s.move(ctx, old, commit); !errors.Is(err, git.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes faster than a note can be added", git.ErrMoved, Ref)
}

func (s Store) move(ctx context.Context, old, new string) error {
	return s.Git.MoveRefs(ctx, git.Edit{Ref: Ref, Old: old, New: new})
}

// Share pushes the commit's note, and no other: notes of commits that stay here, or went to another remote, are not this
// remote's. This repository gets all notes of the remote. It fails with git.ErrDeclined when the remote does not take the
// note, and wraps git.ErrRemote when it cannot be reached. Without a remote it does nothing.
func (s Store) Share(ctx context.Context, commit string) error {
	unmoved := 0 // pushes that were refused although nobody else has moved the ref
	for range maxTries {
		here, err := s.Here(ctx)
		if err != nil || here == "" || s.Remote == "" {
			return err
		}
		there, _, err := s.There(ctx)
		if err != nil {
			return err
		}
		next, err := s.with(ctx, there, here, commit)
		if err != nil {
			return err
		}
		if next != there {
			err = s.Talk.Push(ctx, git.TransferTime, s.Remote, git.Edit{Ref: Ref, Old: there, New: next})
		}
		switch {
		case errors.Is(err, git.ErrMoved):
			continue
		case errors.Is(err, git.ErrStale):
			if unmoved++; unmoved == maxUnmoved { // such as where refs stand below the name
				return fmt.Errorf("%w: %w", git.ErrDeclined, err)
			}
			continue
		case err != nil:
			return err
		}
		all, err := s.join(ctx, here, next)
		if err == nil && all != here {
			err = s.move(ctx, here, all)
		}
		if !errors.Is(err, git.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes faster than it can be pushed", git.ErrRemote, Ref)
}

// with is the state there with what the commit's note says here, too.
func (s Store) with(ctx context.Context, there, here, commit string) (string, error) {
	text, err := s.Read(ctx, here, commit)
	if err != nil {
		return "", err
	}
	tree, err := s.put(ctx, there, commit, text)
	if err != nil || tree == "" {
		return there, err
	}
	var parents []string
	if there != "" {
		parents = []string{there}
	}
	return s.Objects.Commit(tree, parents, "note on "+commit, time.Now())
}

// join is a state that has all notes of both, and goes on from there.
func (s Store) join(ctx context.Context, here, there string) (string, error) {
	if there == "" || here == there {
		return here, nil
	}
	if newer, err := s.Git.Contains(ctx, here, there); newer || err != nil {
		return here, err
	}
	if older, err := s.Git.Contains(ctx, there, here); older || err != nil {
		return there, err
	}
	// The remote's notes since the last join go onto those here. The first time, those here go onto the remote's.
	onto, from := here, there
	since, err := s.Git.Out(ctx, "merge-base", here, there)
	if git.ExitCode(err) == 1 {
		onto, from, since = there, here, there
	} else if err != nil {
		return "", err
	}
	out, err := s.Git.Out(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=AM", "--end-of-options", since, from)
	if err != nil {
		return "", err
	}
	paths := strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	if len(paths) > maxJoined {
		return "", fmt.Errorf("%s here and on %s differ in %d notes; join them with git notes merge", Ref, s.Remote, len(paths))
	}
	at := onto
	for _, path := range paths {
		commit := strings.ReplaceAll(path, "/", "")
		if !git.IsObject(commit) { // no note
			continue
		}
		text, err := s.Read(ctx, from, commit)
		if err != nil {
			return "", err
		}
		tree, err := s.put(ctx, at, commit, text)
		if err != nil {
			return "", err
		}
		if tree != "" {
			at = tree
		}
	}
	trees, err := s.Git.IDs(ctx, []string{at + "^{tree}", there + "^{tree}"})
	if err != nil || trees[0] == trees[1] {
		return there, err
	}
	return s.Objects.Commit(trees[0], []string{there, here}, "notes of two repositories", time.Now())
}

// put is the tree of a state with these lines in the commit's note, too; empty when the note has them all. The note gets the
// place that it has among some hundred others, whatever place it had: git reads notes in all places.
func (s Store) put(ctx context.Context, at, commit string, more []string) (string, error) {
	old, err := s.Read(ctx, at, commit)
	if err != nil {
		return "", err
	}
	text := union(old, more)
	if len(text) == len(old) {
		return "", nil
	}
	whole := strings.Join(text, "\n") + "\n"
	if len(whole) > MaxSize {
		return "", fmt.Errorf("note on %s: %w", git.Short(commit), ErrSize)
	}
	blob, err := s.Objects.Write("blob", []byte(whole))
	if err != nil {
		return "", err
	}
	folder, name := commit[:2], commit[2:]
	top, err := s.list(ctx, at)
	if err != nil {
		return "", err
	}
	var inside entries
	if i := slices.IndexFunc(top, func(e entry) bool { return e.name == folder && e.kind == "tree" }); i >= 0 {
		if inside, err = s.list(ctx, top[i].object); err != nil {
			return "", err
		}
	}
	tree, err := s.write(ctx, inside.with(entry{"100644", "blob", blob, name}))
	if err != nil {
		return "", err
	}
	return s.write(ctx, top.without(commit).with(entry{"040000", "tree", tree, folder}))
}

// entry is one of a tree.
type entry struct{ mode, kind, object, name string }

type entries []entry

func (all entries) without(name string) entries {
	return slices.DeleteFunc(all, func(e entry) bool { return e.name == name })
}

func (all entries) with(e entry) entries { return append(all.without(e.name), e) }

func (s Store) list(ctx context.Context, tree string) (all entries, err error) {
	if tree == "" {
		return nil, nil
	}
	out, err := s.Git.Out(ctx, "ls-tree", "-z", "--end-of-options", tree)
	for line := range strings.SplitSeq(out, "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(head); ok && len(fields) == 3 {
			all = append(all, entry{fields[0], fields[1], fields[2], name})
		}
	}
	return all, err
}

func (s Store) write(ctx context.Context, all entries) (string, error) {
	var in bytes.Buffer
	for _, e := range all {
		fmt.Fprintf(&in, "%s %s %s\t%s\x00", e.mode, e.kind, e.object, e.name)
	}
	out, err := s.Git.Run(ctx, in.String(), "mktree", "-z")
	return strings.TrimSpace(out), err
}

// fanned is the path of a commit's note below so many folders.
func fanned(commit string, fan int) string {
	var path strings.Builder
	for range fan {
		path.WriteString(commit[:2] + "/")
		commit = commit[2:]
	}
	return path.String() + commit
}

// lines are the lines that say something.
func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// union is a and what else b has.
func union(a, b []string) []string {
	all, has := slices.Clone(a), map[string]bool{}
	for _, line := range a {
		has[line] = true
	}
	for _, line := range b {
		if !has[line] {
			all, has[line] = append(all, line), true
		}
	}
	return all
}
