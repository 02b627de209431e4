// Package record stores ralph's records of worktrees: what each was made for, and its progress.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/layer"
)

// Suffix is the suffix of record files.
const Suffix = ".json"

// version is the format version of a record. An older ralph refuses a newer record.
const version = 1

// Errors lists the records that cannot be read, by path.
type Errors struct{ Records map[string]error }

func (e *Errors) Error() string {
	paths := slices.Sorted(maps.Keys(e.Records))
	if len(paths) == 1 {
		return e.Records[paths[0]].Error()
	}
	return fmt.Sprintf("%d worktree records cannot be read; first: %v", len(paths), e.Records[paths[0]])
}

// Of returns the error of an unreadable record of the key, or nil.
func (e *Errors) Of(key string) error {
	for path, err := range e.Records {
		name := strings.TrimSuffix(filepath.Base(path), Suffix)
		if prefix := FolderPrefix(key); strings.HasPrefix(name, prefix) && len(name) == len(prefix+git.Digest()) {
			return err
		}
	}
	return nil
}

// GarbledError means that a record was read but is not valid.
type GarbledError struct{ Err error }

func (e *GarbledError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *GarbledError) Unwrap() error { return e.Err }

// Record describes a worktree. It is stored beside the worktree, never inside, where an agent writes. It is stored before
// the worktree is made, so that a crash leaves nothing unknown.
type Record struct {
	Version int       `json:"version"`
	Spec    Spec      `json:"spec"`
	Start   string    `json:"start"`
	Made    time.Time `json:"made"`
	// MadeBranch says that the branch did not exist before.
	MadeBranch bool `json:"made_branch,omitempty"`
	// Earlier is the last commit that an earlier run of the key imported; empty: none.
	Earlier string `json:"earlier,omitempty"`
	// GitDir is the worktree's entry in the repository's worktrees folder; empty for a private tree.
	GitDir string `json:"git_dir,omitempty"`
	// FoldersCommit is the commit from which the folders of a private tree were made.
	FoldersCommit string `json:"at,omitempty"`
	// History is the commit of the history store that a private tree borrows from: the base's commit when the tree was
	// made.
	History string `json:"history,omitempty"`
	// Layer is the name of the layer below a private tree; empty: none.
	Layer string `json:"layer,omitempty"`
	// Setup is a folder with files made by setup, which the sandbox shows below those of a private tree; empty: none.
	Setup string `json:"setup,omitempty"`
	Lease string `json:"lease"` // the remote branch's commit when the tree was added or last pushed; empty: none
	// RemoteConfig is a digest of the configuration that determines the remote's address and transport.
	RemoteConfig string `json:"remote_config,omitempty"`
	// Incomplete says that git has not finished making the worktree, and nobody has worked in it.
	Incomplete bool `json:"making,omitempty"`
	// Used says that a sandbox has been open on the tree, or that an agent has worked in it.
	Used bool `json:"used,omitempty"`
	// InUse says that the tree may have work that is on none of ralph's refs.
	InUse bool `json:"in_use,omitempty"`
	// PendingRebase is a rebase whose refs are moving; a crash leaves it set.
	PendingRebase *Rebase `json:"moving,omitempty"`
	// Replaced is a commit in the private repository that Rebase or Finish has replaced.
	Replaced string `json:"replaced,omitempty"`
	// Finished is the last tip that Finish has made.
	Finished string `json:"finished,omitempty"`
	importer.Failures
}

// Rebase describes the commits of the record after a rebase.
type Rebase struct {
	Onto    Base   `json:"onto"`
	Tip     string `json:"tip"`
	Start   string `json:"start"`
	Earlier string `json:"earlier,omitempty"`
}

// Store reads and writes the records of a repository's worktrees. It is safe for concurrent use, also by several processes.
type Store struct {
	Dir, Temp string // Temp is on the same file system
	Entries   string // the repository's folder of worktree entries
}

// Path returns the path of the record with this name.
func (s Store) Path(name string) string { return filepath.Join(s.Dir, name+Suffix) }

// Save replaces the record atomically. A durable one survives a power loss.
func (s Store) Save(name string, rec Record, durable bool) error {
	rec.Version = version
	content, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, err)
	}
	survives := disk.Process
	if durable {
		survives = disk.Power
	}
	temp, err := disk.WriteTemp(s.Temp, append(content, '\n'), 0o600, survives)
	if err == nil {
		err = disk.Install(temp, s.Path(name), survives)
	}
	if err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, err)
	}
	return nil
}

// Load reads a record.
func (s Store) Load(name string) (Record, error) {
	path := s.Path(name)
	content, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("worktree %s: %w", name, err)
	}
	rec, err := Decode(content)
	if err != nil {
		return Record{}, fmt.Errorf("worktree record %s: %w", path, &GarbledError{err})
	}
	if rec.GitDir != "" { // the repository may have moved
		rec.GitDir = filepath.Join(s.Entries, filepath.Base(rec.GitDir))
	}
	return rec, nil
}

// All reads all records, by name. The readable ones are returned even with [*Errors].
func (s Store) All() (map[string]Record, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	all, broken := map[string]Record{}, map[string]error{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), Suffix)
		if !ok {
			continue
		}
		rec, err := s.Load(name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			broken[s.Path(name)] = err
		default:
			all[name] = rec
		}
	}
	if len(broken) > 0 {
		return all, &Errors{Records: broken}
	}
	return all, nil
}

// Used returns a function that collects the values of of over all records; it fails if one is unreadable.
func (s Store) Used(of func(Record) string) func() (map[string]bool, error) {
	return func() (map[string]bool, error) {
		all, err := s.All()
		used := map[string]bool{}
		for _, rec := range all {
			used[of(rec)] = true
		}
		return used, err
	}
}

// Decode parses a record and refuses one with unsafe names.
func Decode(content []byte) (Record, error) {
	var rec Record
	if err := json.Unmarshal(content, &rec); err != nil {
		return Record{}, err
	}
	if rec.Version > version {
		return Record{}, claim.ErrVersion
	}
	if err := rec.Spec.Check(); err != nil {
		return Record{}, err
	}
	for _, sha := range []string{rec.Start, rec.Spec.Base.Commit} {
		if !git.IsObject(sha) {
			return Record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	for _, sha := range []string{rec.Spec.FilterBase, rec.Lease, rec.Replaced, rec.Finished, rec.Earlier, rec.History, rec.FoldersCommit} {
		if sha != "" && !git.IsObject(sha) {
			return Record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	if private := rec.Spec.Private; private != (rec.GitDir == "") || private != (rec.History != "") {
		return Record{}, errors.New("it is neither a private tree nor a linked one")
	}
	if rec.Layer != "" && !layer.IsName(rec.Layer) {
		return Record{}, fmt.Errorf("%q is not a layer", rec.Layer)
	}
	if m := rec.PendingRebase; m != nil && (!git.IsObject(m.Tip) || !git.IsObject(m.Onto.Commit) || !git.IsObject(m.Start)) {
		return Record{}, errors.New("it names a rebase without commits")
	}
	for _, path := range []string{rec.GitDir, rec.Setup} {
		if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
			return Record{}, fmt.Errorf("%q is not a clean absolute path", path)
		}
	}
	return rec, nil
}
