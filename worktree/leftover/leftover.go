// Package leftover finds what killed processes, lost folders and damaged objects have left of ralph in a repository and in
// its state folder, and removes it. Package worktree calls it. Everything here is safe for concurrent use, by goroutines
// and by several ralph processes on one repository.
package leftover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/trash"
)

// Kind is a kind of leftover. The texts are for people.
type Kind string

const (
	Lock      Kind = "stale ref lock"                   // on one of ralph's refs, by a git that was killed
	Ref       Kind = "broken ref"                       // one of ralph's refs names no commit, or one with missing objects
	Checkout  Kind = "worktree entry without a folder"  // git refuses to check its branch out elsewhere
	Elsewhere Kind = "worktree of another state folder" // its branch cannot be checked out here
	Record    Kind = "unreadable worktree record"       // its worktree is not known
	Stray     Kind = "worktree without a record"        // it was lost, and the run's files are left
	Temp      Kind = "temporary files of a dead ralph"  // in the state folder
	Trash     Kind = "removed worktree still on disk"   // it is being deleted, or something in it could not be
)

// Leftover is one thing that was left.
type Leftover struct {
	Kind   Kind
	Where  string // a path, or the name of a ref
	Detail string // more about it; may be empty
	Key    string // that it belongs to: nothing may be removed while that is worked; empty: none
	Safe   bool   // removing it loses nothing
	// Remove removes it, or sets it aside. The text says what became of it; it may be empty. Nil: a person has to look.
	Remove func(ctx context.Context) (string, error)
}

// Scope is where to look.
type Scope struct {
	Git    git.Runner // pinned to the repository, and owning ralph's refs
	Common string     // the repository's own folder
	State  string     // the state folder
	Root   string     // the state folder of all namespaces
	Bin    *trash.Bin // in the state folder
	Self   claim.Process
	Age    time.Duration
	// Refs are the prefixes of ralph's refs, and Old the ref that keeps a commit of a key.
	Refs []string
	Old  func(key, commit string) string
	// LockEntries keeps others from adding and removing worktree entries.
	LockEntries func(ctx context.Context) (unlock func(), err error)
	// Record is the path of a worktree's record, and SetAside keeps the worktree's folders elsewhere and frees its branch.
	Record   func(name string) string
	SetAside func(ctx context.Context, name string) (string, error)
	// Known are the entries that belong to a record of ralph's, by path.
	Known map[string]bool
}

// Find lists what was left. Only a thorough look reads the objects of ralph's refs, and lists removed worktrees: any other has them
// deleted.
func (s Scope) Find(ctx context.Context, thorough bool) ([]Leftover, error) {
	locks, err := s.locks()
	all := append(locks, s.garbled()...)
	if thorough { // before the entries: git looks for a commit on all refs
		refs, errRefs := s.brokenRefs(ctx, s.Refs...)
		all, err = append(all, refs...), errors.Join(err, errRefs)
	}
	entries, errEntries := s.entries(ctx)
	all = slices.Concat(all, entries, s.strays(), s.temp())
	if thorough {
		all = append(all, s.trash()...)
	} else {
		s.Bin.Empty() // no sweep waits for a deletion
	}
	return all, errors.Join(err, errEntries)
}

func (s Scope) locks() ([]Leftover, error) {
	paths, err := s.Git.StaleLocks()
	var all []Leftover
	for _, path := range paths {
		all = append(all, Leftover{Kind: Lock, Where: path, Safe: true, Remove: func(context.Context) (string, error) {
			if !s.old(path) { // another git has it by now
				return "", nil
			}
			return "", os.Remove(path)
		}})
	}
	return all, err
}

func removing(path string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", disk.RemoveAll(path) }
}

// entries lists ralph's worktree entries which no record knows. The folder is gone: the state folder was lost. Or it is in
// another state folder. Git refuses to check their branch out, and fails at one that is half made.
func (s Scope) entries(ctx context.Context) ([]Leftover, error) {
	unlock, err := s.LockEntries(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dirs, err := os.ReadDir(filepath.Join(s.Common, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Leftover
	for _, d := range dirs {
		entry := filepath.Join(s.Common, "worktrees", d.Name())
		if s.Known[entry] || !IsOurs(entry) {
			continue
		}
		folder := folderOf(entry)
		if _, err := os.Lstat(folder); folder != "" && !errors.Is(err, fs.ErrNotExist) {
			if !strings.HasPrefix(folder, s.Root+string(filepath.Separator)) && s.old(entry) && !runs(ctx, entry) {
				key := KeyOf(d.Name())
				all = append(all, Leftover{
					Kind: Elsewhere, Where: folder, Detail: occupies(entry), Key: key,
					Remove: func(ctx context.Context) (string, error) {
						return "its files stay there; git does not know it any more", s.RemoveEntry(ctx, entry, key)
					},
				})
			}
			continue
		}
		// Only this state folder's own entries are made under our lock.
		own := strings.HasPrefix(folder, s.State+string(filepath.Separator))
		if !own && !s.old(entry) {
			continue
		}
		key := KeyOf(d.Name())
		all = append(all, Leftover{
			Kind: Checkout, Where: entry, Detail: occupies(entry), Key: key, Safe: own, // a folder elsewhere may only be out of sight
			Remove: func(ctx context.Context) (string, error) { return "", s.RemoveEntry(ctx, entry, key) },
		})
	}
	return all, err
}

// runs reports that a process of the run that an entry was made for is alive.
func runs(ctx context.Context, entry string) bool {
	reason, _ := git.ReadLinked(filepath.Join(entry, "locked"))
	pids, err := proc.Parts(ctx, strings.TrimPrefix(strings.TrimSpace(string(reason)), git.LockReason))
	return err != nil || len(pids) > 0
}

// IsOurs reports that ralph has made the worktree entry.
func IsOurs(entry string) bool {
	reason, _ := git.ReadLinked(filepath.Join(entry, "locked")) // most are not
	return strings.HasPrefix(string(reason), git.LockReason)
}

// folderOf is the folder of a worktree entry; empty when the entry does not say.
func folderOf(entry string) string {
	link, _ := git.ReadLinked(filepath.Join(entry, "gitdir"))
	if path := strings.TrimSpace(string(link)); path != "" {
		return filepath.Dir(path)
	}
	return ""
}

// KeyOf is the key in the name of a worktree, which ends in a digest.
func KeyOf(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}

// occupies says which branch cannot be checked out because of the entry.
func occupies(entry string) string {
	head, _, _ := git.ReadRegular(filepath.Join(entry, "HEAD"))
	if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "+git.Heads); ok {
		return "branch " + branch + " is checked out there"
	}
	return ""
}

func (s Scope) old(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > s.Age
}

// RemoveEntry removes a worktree entry whose folder is gone. A commit that only its HEAD has is kept on a ref of the key.
func (s Scope) RemoveEntry(ctx context.Context, entry, key string) error {
	if err := s.KeepHead(ctx, entry, key); err != nil {
		return err
	}
	return s.Unlink(ctx, entry)
}

// KeepHead makes sure that a ref has the commit that the entry's HEAD is at.
func (s Scope) KeepHead(ctx context.Context, entry, key string) error {
	content, _, _ := git.ReadRegular(filepath.Join(entry, "HEAD"))
	head := strings.TrimSpace(string(content))
	if !git.IsObject(head) || strings.Trim(head, "0") == "" { // its branch keeps the commit
		return nil
	}
	there, err := s.Git.Objects(ctx, "commit", []string{head})
	if err != nil || there[head] == "" {
		return err
	}
	on, err := s.Git.Out(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains", head)
	if err != nil || on != "" {
		return err
	}
	return s.Git.MoveRefs(ctx, git.Edit{Ref: s.Old(key, head), New: head, Any: true})
}

// Unlink deletes a worktree entry, at once if it can: git fails at one that is half deleted.
func (s Scope) Unlink(ctx context.Context, entry string) error {
	_ = s.Bin.Put(filepath.Base(entry), entry)
	if _, err := os.Lstat(entry); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The state folder may be gone, or on another file system.
	unlock, err := s.LockEntries(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(entry); err != nil {
		return fmt.Errorf("remove %s: %w", entry, err)
	}
	return nil
}
