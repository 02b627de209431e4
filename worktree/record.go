package worktree

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/layer"
)

const recordSuffix = ".json"

// recordVersion is the format of a record. An older ralph refuses a newer one.
const recordVersion = 1

// RecordsError lists the worktree records that cannot be read, by path. Trees and Branches return it together with
// everything else.
type RecordsError struct{ Records map[string]error }

func (e *RecordsError) Error() string {
	paths := slices.Sorted(maps.Keys(e.Records))
	if len(paths) == 1 {
		return e.Records[paths[0]].Error()
	}
	return fmt.Sprintf("%d worktree records cannot be read; first: %v", len(paths), e.Records[paths[0]])
}

// recordError is a record that was read and says nothing sensible.
type recordError struct{ error }

func (e *recordError) Unwrap() error { return e.error }

// record is what ralph knows about a worktree. It is stored beside the worktree, never inside, where an agent writes, and
// before the worktree is made, so that a crash leaves nothing that is not known.
type record struct {
	Version int       `json:"version"`
	Spec    Spec      `json:"spec"`
	Start   string    `json:"start"`
	Made    time.Time `json:"made"`
	// Earlier is the last commit that an earlier run of the key imported; empty: none.
	Earlier string `json:"earlier,omitempty"`
	// GitDir is the worktree's own folder inside the repository's worktrees folder; empty for a private tree.
	GitDir string `json:"git_dir,omitempty"`
	// At is the commit that the folders of a private tree were made at.
	At string `json:"at,omitempty"`
	// History is the commit of the history store that a private tree borrows from: that of the base when it was made.
	History string `json:"history,omitempty"`
	// Layer is the layer that a private tree is laid over; empty: none.
	Layer string `json:"layer,omitempty"`
	// Setup is a folder with what setup has made, which the sandbox shows below the files of a private tree; empty: none.
	Setup string `json:"setup,omitempty"`
	Lease string `json:"lease"` // the branch on the remote when the tree was added or last pushed; empty: none
	// RemoteConfig is a digest of the configuration that decides who answers for the remote.
	RemoteConfig string `json:"remote_config,omitempty"`
	// Making: git has not finished making the worktree, and nobody has worked in it.
	Making bool `json:"making,omitempty"`
	// Used: a sandbox has been open on it or an agent has worked in it.
	Used bool `json:"used,omitempty"`
	// InUse: something in it may be on no ref of ralph's.
	InUse bool `json:"in_use,omitempty"`
	// Moving is a rebase whose refs move; a crash leaves it set.
	Moving *move `json:"moving,omitempty"`
	// Replaced is a commit that stands in the private repository and that Rebase or Finish has replaced.
	Replaced string `json:"replaced,omitempty"`
	// Finished is the tip that Finish has made last.
	Finished string `json:"finished,omitempty"`
	importer.Failures
}

// move is what a rebase makes of the commits that the record names.
type move struct {
	Onto    Base   `json:"onto"`
	Tip     string `json:"tip"`
	Start   string `json:"start"`
	Earlier string `json:"earlier,omitempty"`
}

func (r *Repo) recordPath(name string) string { return r.path("worktrees", name+recordSuffix) }

// saveRecord replaces the record: a reader sees the old one or the new one. A durable one outlives a power loss.
func (r *Repo) saveRecord(name string, rec record, durable bool) error {
	rec.Version = recordVersion
	content, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, err)
	}
	temp := filepath.Join(r.temp, "record-"+rand.Text())
	if err := git.WriteNew(temp, append(content, '\n'), 0o600, durable); err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, err)
	}
	if err := os.Rename(temp, r.recordPath(name)); err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, errors.Join(err, os.Remove(temp)))
	}
	return nil
}

func (r *Repo) loadRecord(name string) (record, error) {
	path := r.recordPath(name)
	content, err := os.ReadFile(path)
	if err != nil {
		return record{}, fmt.Errorf("worktree %s: %w", name, err)
	}
	rec, err := decodeRecord(content)
	if err != nil {
		return record{}, fmt.Errorf("worktree record %s: %w", path, &recordError{err})
	}
	if rec.GitDir != "" { // the repository may have been moved
		rec.GitDir = r.entry(filepath.Base(rec.GitDir))
	}
	return rec, nil
}

// decodeRecord reads a record and refuses one that would name anything unsafe.
func decodeRecord(content []byte) (record, error) {
	var rec record
	if err := json.Unmarshal(content, &rec); err != nil {
		return record{}, err
	}
	if rec.Version > recordVersion {
		return record{}, ErrVersion
	}
	if err := rec.Spec.check(); err != nil {
		return record{}, err
	}
	for _, sha := range []string{rec.Start, rec.Spec.Base.Commit} {
		if !git.IsObject(sha) {
			return record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	for _, sha := range []string{rec.Spec.From, rec.Lease, rec.Replaced, rec.Finished, rec.Earlier, rec.History, rec.At} {
		if sha != "" && !git.IsObject(sha) {
			return record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	if private := rec.Spec.Private; private != (rec.GitDir == "") || private != (rec.History != "") {
		return record{}, errors.New("it is neither a private tree nor a linked one")
	}
	if rec.Layer != "" && !layer.IsName(rec.Layer) {
		return record{}, fmt.Errorf("%q is not a layer", rec.Layer)
	}
	if m := rec.Moving; m != nil && (!git.IsObject(m.Tip) || !git.IsObject(m.Onto.Commit) || !git.IsObject(m.Start)) {
		return record{}, errors.New("it names a rebase without commits")
	}
	for _, path := range []string{rec.GitDir, rec.Setup} {
		if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
			return record{}, fmt.Errorf("%q is not a clean absolute path", path)
		}
	}
	return rec, nil
}
