package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Leftover is a trace of a killed process or of damage.
type Leftover = leftover.Leftover

// SetAsideError reports the new place of a worktree's files, because its work cannot be imported. It is an [ErrUnsaved].
type SetAsideError = leftover.SetAsideError

// Leftovers lists the traces of killed processes, lost folders and damage. With thorough, it also reads the objects of
// ralph's refs and lists removed worktrees; without, it has removed worktrees deleted. The caller must not remove a
// leftover of a key that is being worked.
func (r *Repo) Leftovers(ctx context.Context, thorough bool) ([]Leftover, error) {
	trees, err := r.Trees(ctx)
	broken, unreadable := errors.AsType[*record.Errors](err)
	if err != nil && !unreadable {
		return nil, err
	}
	known := map[string]bool{}
	for _, t := range trees {
		known[t.rec.GitDir] = true
	}
	var all []Leftover
	if unreadable {
		for path, why := range broken.Records {
			name := strings.TrimSuffix(filepath.Base(path), record.Suffix)
			known[filepath.Join(r.records.Entries, name)] = true
			l := Leftover{Kind: leftover.Record, Where: path, Detail: why.Error(), Key: traces.KeyOf(name)}
			if _, garbled := errors.AsType[*record.GarbledError](why); garbled && !errors.Is(why, ErrVersion) {
				l.Safe = true
				l.Remove = func(ctx context.Context) (string, error) { return r.setAsideName(ctx, name) }
			}
			all = append(all, l)
		}
	}
	more, err := r.leftovers(known).Find(ctx, thorough)
	return append(all, more...), err
}

// TempLeftovers lists the temporary files of dead processes.
func (r *Repo) TempLeftovers() []Leftover { return r.leftovers(nil).TempFolders() }

func (r *Repo) leftovers(known map[string]bool) traces.Scope {
	return traces.Scope{
		Git: r.git, Common: r.location.Common, State: r.statePath("."), Root: r.opts.StateDir, Bin: r.trash, Self: r.self, Age: staleAge, Known: known,
		Refs: []string{refname.Own, r.refNames.Branches}, Old: r.refNames.OldTip, LockEntries: r.lockWorktrees,
		Record: r.records.Path, SetAside: r.setAsideName, Holds: r.merger().Leftovers,
	}
}

// dropBroken removes the key's broken refs, and the branch too if it is broken and has ralph's prefix.
func (r *Repo) dropBroken(ctx context.Context, s Spec) (dropped bool, err error) {
	refs := []string{r.refNames.Work(s.Key), r.refNames.WIP(s.Key), r.refNames.OldTipPrefix(s.Key)}
	if branch := refname.Branch(s.Branch); strings.HasPrefix(branch, r.refNames.Branches) {
		refs = append(refs, branch)
	}
	return r.leftovers(nil).DropBroken(ctx, r.log, refs...)
}

// setAsideName moves the files of a worktree whose record is unreadable or lost to the kept folder, and frees the branch.
func (r *Repo) setAsideName(ctx context.Context, name string) (string, error) {
	content, err := os.ReadFile(r.records.Path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	t := &Tree{repo: r, name: name}
	if entry := filepath.Join(r.records.Entries, name); traces.IsOurs(entry) {
		t.rec.GitDir = entry
		if err := r.leftovers(nil).KeepHead(ctx, entry, traces.KeyOf(name)); err != nil {
			return "", err
		}
	}
	kept := t.newKeptDir()
	if moved := t.moveAside(kept); moved != nil || err != nil {
		return "its files are in " + kept, moved
	}
	return "its files are in " + kept, os.WriteFile(filepath.Join(kept, "record"), content, 0o600)
}
