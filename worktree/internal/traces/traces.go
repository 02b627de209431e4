// Package traces finds traces of killed processes, lost folders and damaged objects in a repository and in its state
// folder, and removes them. Its caller is package worktree. It is safe for concurrent use, by goroutines and by several
// ralph processes on one repository.
package traces

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
	"github.com/ralph-pool/ralph/worktree/internal/trash"
	"github.com/ralph-pool/ralph/worktree/leftover"
)

// Scope says where to search.
type Scope struct {
	Git    git.Runner // pinned to the repository, and owning ralph's refs
	Common string     // common git directory of the repository
	State  string     // the state folder
	Root   string     // the state folder of all namespaces
	Bin    *trash.Bin // trash folder in the state folder
	Self   claim.Process
	Age    time.Duration
	// Refs lists the prefixes of ralph's refs. Old returns the ref that keeps a commit of a key.
	Refs []string
	Old  func(key, commit string) string
	// LockEntries takes the lock for adding and removing worktree entries.
	LockEntries func(ctx context.Context) (unlock func(), err error)
	// Record returns the path of a worktree's record. SetAside moves the worktree's folders to the kept folder and frees
	// its branch.
	Record   func(name string) string
	SetAside func(ctx context.Context, name string) (string, error)
	// Holds lists the locks of dead ralphs on indexes.
	Holds func(ctx context.Context) ([]leftover.Leftover, error)
	// Known has the paths of the entries that belong to a record of ralph's.
	Known map[string]bool
}

// Find lists leftovers. With thorough, it also reads the objects of ralph's refs and lists removed worktrees; without, it
// has removed worktrees deleted.
func (s Scope) Find(ctx context.Context, thorough bool) ([]leftover.Leftover, error) {
	locks, err := s.staleLocks()
	all := append(locks, s.garbledRefs(s.Refs...)...)
	if thorough { // before the entries: git searches all refs for a commit
		refs, errRefs := s.brokenRefs(ctx, s.Refs...)
		all, err = append(all, refs...), errors.Join(err, errRefs)
	}
	entries, errEntries := s.lostEntries(ctx)
	holds, errHolds := s.Holds(ctx)
	all = slices.Concat(all, entries, s.strays(), s.TempFolders(), holds)
	if thorough {
		all = append(all, s.removedFolders()...)
	} else {
		s.removeEmptyTemp()
		s.Bin.Empty() // in the background: no sweep waits for a deletion
	}
	return all, errors.Join(err, errEntries, errHolds)
}

func (s Scope) staleLocks() ([]leftover.Leftover, error) {
	paths, err := s.Git.StaleLocks()
	var all []leftover.Leftover
	for _, path := range paths {
		all = append(all, leftover.Leftover{Kind: leftover.Lock, Where: path, Safe: true, Remove: func(ctx context.Context) (string, error) {
			return "", s.Git.FreeLock(ctx, path)
		}})
	}
	return all, err
}

func removeFunc(path string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", disk.RemoveAll(path) }
}

// lostEntries lists ralph's worktree entries without a record. Their folders are gone because the state folder was lost, or
// are in another state folder. Git refuses to check out their branches, and fails at a half-made entry.
func (s Scope) lostEntries(ctx context.Context) ([]leftover.Leftover, error) {
	unlock, err := s.LockEntries(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dirs, err := os.ReadDir(filepath.Join(s.Common, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []leftover.Leftover
	for _, d := range dirs {
		entry := filepath.Join(s.Common, "worktrees", d.Name())
		if s.Known[entry] || !IsOurs(entry) {
			continue
		}
		folder, _ := git.LinkedTop(entry)
		if _, err := os.Lstat(folder); folder != "" && !errors.Is(err, fs.ErrNotExist) {
			if !strings.HasPrefix(folder, s.Root+string(filepath.Separator)) && s.isOld(entry) && !hasLiveRun(ctx, entry) {
				key := KeyOf(d.Name())
				all = append(all, leftover.Leftover{
					Kind: leftover.OtherState, Where: folder, Detail: describeBranch(entry), Key: key,
					Remove: func(ctx context.Context) (string, error) {
						return "its files stay there; git does not list it as a worktree any more", s.RemoveEntry(ctx, entry, key)
					},
				})
			}
			continue
		}
		// Our lock only covers the making of this state folder's own entries.
		inThisState := strings.HasPrefix(folder, s.State+string(filepath.Separator))
		if !inThisState && !s.isOld(entry) {
			continue
		}
		key := KeyOf(d.Name())
		all = append(all, leftover.Leftover{
			Kind: leftover.Checkout, Where: entry, Detail: describeBranch(entry), Key: key, Safe: inThisState, // a folder elsewhere may only be unreachable now
			Remove: func(ctx context.Context) (string, error) { return "", s.RemoveEntry(ctx, entry, key) },
		})
	}
	return all, err
}

// hasLiveRun reports whether a process of the entry's run is alive.
func hasLiveRun(ctx context.Context, entry string) bool {
	reason, _ := git.ReadLinked(filepath.Join(entry, "locked"))
	pids, err := proc.Parts(ctx, strings.TrimPrefix(strings.TrimSpace(string(reason)), git.LockReason))
	return err != nil || len(pids) > 0
}

// IsOurs reports whether ralph has made the worktree entry.
func IsOurs(entry string) bool {
	reason, _ := git.ReadLinked(filepath.Join(entry, "locked")) // most are not locked
	return strings.HasPrefix(string(reason), git.LockReason)
}

// KeyOf returns the key in a worktree's name, which ends in a digest.
func KeyOf(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}

// describeBranch describes the branch that cannot be checked out because of the entry.
func describeBranch(entry string) string {
	head, _, _ := git.ReadRegular(filepath.Join(entry, "HEAD"))
	if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "+git.Heads); ok {
		return "branch " + branch + " is checked out there"
	}
	return ""
}

func (s Scope) isOld(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > s.Age
}

// RemoveEntry removes a worktree entry whose folder is gone. It keeps a commit that only the entry's HEAD has on a ref of
// the key.
func (s Scope) RemoveEntry(ctx context.Context, entry, key string) error {
	if err := s.KeepHead(ctx, entry, key); err != nil {
		return err
	}
	return s.Unlink(ctx, entry)
}

// KeepHead makes sure that a ref contains the commit of the entry's HEAD.
func (s Scope) KeepHead(ctx context.Context, entry, key string) error {
	content, _, _ := git.ReadRegular(filepath.Join(entry, "HEAD"))
	head := strings.TrimSpace(string(content))
	if !git.IsObject(head) || strings.Trim(head, "0") == "" { // on a branch, which keeps the commit
		return nil
	}
	there, err := s.Git.Objects(ctx, "commit", []string{head})
	if err != nil || there[head] == "" {
		return err
	}
	on, err := s.Git.Output(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains", head)
	if err != nil || on != "" {
		return err
	}
	return s.Git.MoveRefs(ctx, git.Edit{Ref: s.Old(key, head), New: head, Any: true})
}

// Unlink deletes a worktree entry, if possible in one step: git fails at a half-deleted one.
func (s Scope) Unlink(ctx context.Context, entry string) error {
	_ = s.Bin.Put(filepath.Base(entry), entry)
	if _, err := os.Lstat(entry); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The rename failed: the state folder may be gone, or on another file system.
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
