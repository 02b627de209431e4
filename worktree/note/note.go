// Package note stores lines of text about commits as git notes, and shares them with a remote.
//
// Concurrent writers lose nothing: the ref moves by compare-and-swap, here and on the remote, and diverged notes are joined
// line by line. Notes are data that anybody with push access can have written. The package is safe for concurrent use, also
// by several processes.
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
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
)

// Ref is the ref of the notes. This command shows them: git notes --ref=ralph show COMMIT.
const Ref = "refs/notes/ralph"

// MaxSize is the size limit of a note, in bytes.
const MaxSize = 1 << 20

const (
	maxTries      = 100      // tries of a compare-and-swap: a failed try means that somebody else's succeeded
	maxUnmoved    = 3        // pushes that are refused as stale although the ref has not moved
	maxJoined     = 5000     // notes that one join may handle
	maxFetchBytes = 64 << 20 // limit of one fetch, in bytes; a note takes about a thousand
)

// ErrSize means that a note exceeds MaxSize.
var ErrSize = fmt.Errorf("the note is larger than %d KiB", MaxSize>>10)

// Store reads and writes the notes of one repository.
type Store struct {
	Git       git.Runner // pinned to the repository
	Objects   git.Store  // of the repository
	RemoteGit git.Runner // may talk to the remote
	Remote    string     // name of the remote; empty: none
}

// LocalHead returns the commit of this repository's notes, for [Store.Read]; empty if there are none.
func (s Store) LocalHead(ctx context.Context) (string, error) {
	refs, err := s.Git.Refs(ctx, Ref)
	return refs[Ref], err
}

// RemoteHead returns the commit of the remote's notes, and the commits of other refs of the remote; both may be empty. It
// fetches the notes and moves no ref.
func (s Store) RemoteHead(ctx context.Context, others ...string) (notes string, at map[string]string, err error) {
	if s.Remote == "" {
		return "", nil, nil
	}
	for range maxTries {
		at, err := s.RemoteGit.RemoteRefs(ctx, s.Remote, append([]string{Ref}, others...)...)
		if err != nil || at[Ref] == "" {
			return "", at, err
		}
		err = s.FetchCommit(ctx, at[Ref])
		if err == nil {
			return at[Ref], at, nil
		}
		again, readErr := s.RemoteGit.RemoteRefs(ctx, s.Remote, Ref)
		if readErr != nil || again[Ref] == at[Ref] { // otherwise the ref has moved, and its old commit may be gone
			return "", nil, errors.Join(err, readErr)
		}
	}
	return "", nil, fmt.Errorf("%w: %s changes faster than it can be fetched", git.ErrRemote, Ref)
}

// FetchCommit fetches a commit of a remote ref unless all its objects are here. It checks all objects, because another process
// that is fetching may have stored the commit before its files. It moves no ref.
func (s Store) FetchCommit(ctx context.Context, commit string) error {
	if !git.IsObject(commit) {
		return fmt.Errorf("%q is not the full name of an object", commit)
	}
	here, err := s.Git.Test(ctx, "rev-list", "--objects", "--quiet", commit, "--not", "--all")
	if here || err != nil && !git.Failed(err) {
		return err
	}
	err = incoming.Fetch(ctx, s.RemoteGit, s.Remote, maxFetchBytes, commit)
	if errors.Is(err, incoming.ErrSize) {
		return fmt.Errorf("%s is larger than %s: %w; to fetch it all the same: git fetch %s %s",
			Ref, disk.Size(maxFetchBytes), err, s.Remote, commit)
	}
	return err
}

// Read returns the lines of a commit's note as of the notes commit at, or none without a note. It fails with ErrSize.
func (s Store) Read(ctx context.Context, at, commit string) ([]string, error) {
	if at == "" {
		return nil, nil
	}
	if !git.IsObject(commit) || !git.IsObject(at) {
		return nil, fmt.Errorf("%q and %q have to be full names of objects", at, commit)
	}
	var names []string
	for fan := 0; fan <= 3; fan++ { // git spreads many notes over nested folders
		names = append(names, at+":"+fannedPath(commit, fan))
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

// Add adds a line to the commit's note, unless the note has it.
func (s Store) Add(ctx context.Context, commit, line string) error {
	for range maxTries {
		old, err := s.LocalHead(ctx)
		if err != nil {
			return err
		}
		tree, err := s.addLines(ctx, old, commit, []string{line})
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
		if err = s.moveRef(ctx, old, commit); !errors.Is(err, git.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes faster than a note can be added", git.ErrMoved, Ref)
}

func (s Store) moveRef(ctx context.Context, old, new string) error {
	return s.Git.MoveRefs(ctx, git.Edit{Ref: Ref, Old: old, New: new})
}

// Push pushes the commit's note and no other: notes of commits that stay here, or went to another remote, do not belong on
// this remote. This repository gets all notes of the remote. Share fails with git.ErrDeclined if the remote refuses the
// note, and wraps git.ErrRemote if it cannot be reached. Without a remote it does nothing.
func (s Store) Push(ctx context.Context, commit string) error {
	unmoved := 0 // pushes that were refused although nobody else has moved the ref
	for range maxTries {
		localNotes, err := s.LocalHead(ctx)
		if err != nil || localNotes == "" || s.Remote == "" {
			return err
		}
		remoteNotes, _, err := s.RemoteHead(ctx)
		if err != nil {
			return err
		}
		next, err := s.withNote(ctx, remoteNotes, localNotes, commit)
		if err != nil {
			return err
		}
		if next != remoteNotes {
			err = s.RemoteGit.Push(ctx, git.TransferTime, s.Remote, git.Edit{Ref: Ref, Old: remoteNotes, New: next})
		}
		switch {
		case errors.Is(err, git.ErrMoved):
			continue
		case errors.Is(err, git.ErrStale):
			if unmoved++; unmoved == maxUnmoved { // for example if other refs exist below that name
				return fmt.Errorf("%w: %w", git.ErrDeclined, err)
			}
			continue
		case err != nil:
			return err
		}
		all, err := s.joinNotes(ctx, localNotes, next)
		if err == nil && all != localNotes {
			err = s.moveRef(ctx, localNotes, all)
		}
		if !errors.Is(err, git.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes faster than it can be pushed", git.ErrRemote, Ref)
}

// withNote returns a notes commit on top of remoteNotes that also has the lines of the commit's note in localNotes.
func (s Store) withNote(ctx context.Context, remoteNotes, localNotes, commit string) (string, error) {
	text, err := s.Read(ctx, localNotes, commit)
	if err != nil {
		return "", err
	}
	tree, err := s.addLines(ctx, remoteNotes, commit, text)
	if err != nil || tree == "" {
		return remoteNotes, err
	}
	var parents []string
	if remoteNotes != "" {
		parents = []string{remoteNotes}
	}
	return s.Objects.Commit(tree, parents, "note on "+commit, time.Now())
}

// joinNotes returns a notes commit with all notes of both, on top of both.
func (s Store) joinNotes(ctx context.Context, localNotes, remoteNotes string) (string, error) {
	if remoteNotes == "" || localNotes == remoteNotes {
		return localNotes, nil
	}
	if newer, err := s.Git.Contains(ctx, localNotes, remoteNotes); newer || err != nil {
		return localNotes, err
	}
	if older, err := s.Git.Contains(ctx, remoteNotes, localNotes); older || err != nil {
		return remoteNotes, err
	}
	// Add the remote's notes since the last join to those here. The first time, add the local notes to the remote's.
	onto, from := localNotes, remoteNotes
	since, err := s.Git.Output(ctx, "merge-base", localNotes, remoteNotes)
	if git.ExitCode(err) == 1 {
		onto, from, since = remoteNotes, localNotes, remoteNotes
	} else if err != nil {
		return "", err
	}
	out, err := s.Git.Output(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=AM", "--end-of-options", since, from)
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
		if !git.IsObject(commit) { // not a note
			continue
		}
		text, err := s.Read(ctx, from, commit)
		if err != nil {
			return "", err
		}
		tree, err := s.addLines(ctx, at, commit, text)
		if err != nil {
			return "", err
		}
		if tree != "" {
			at = tree
		}
	}
	trees, err := s.Git.IDs(ctx, []string{at + "^{tree}", remoteNotes + "^{tree}"})
	if err != nil || trees[0] == trees[1] {
		return remoteNotes, err
	}
	return s.Objects.Commit(trees[0], []string{remoteNotes, localNotes}, "notes of two repositories", time.Now())
}

// addLines returns the tree of the notes at a commit with more lines added to one note, or "" if the note has them all. It
// stores the note at the path that git uses for some hundred notes, whatever its path was: git reads all paths.
func (s Store) addLines(ctx context.Context, at, commit string, more []string) (string, error) {
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

// entry is an entry of a tree.
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
	out, err := s.Git.Output(ctx, "ls-tree", "-z", "--end-of-options", tree)
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

// fannedPath returns the path of a commit's note inside fan nested folders.
func fannedPath(commit string, fan int) string {
	var path strings.Builder
	for range fan {
		path.WriteString(commit[:2] + "/")
		commit = commit[2:]
	}
	return path.String() + commit
}

// lines returns the lines of text that are not blank.
func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// union returns a and the lines of b that a lacks.
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
