package worktree

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const recordSuffix = ".json"

// record is what ralph knows about a worktree, kept beside it: never inside, where an agent writes. It is written
// before the worktree is made, so that a crash at any instant leaves nothing that is not known.
type record struct {
	Spec   Spec   `json:"spec"`
	Start  string `json:"start"`
	GitDir string `json:"git_dir"` // the worktree's own folder inside the repository's worktrees folder
	Lease  string `json:"lease"`   // the branch on the remote when the tree was added or last pushed; empty: none
	// RemoteConfig is the digest of what decided, when the tree was added, who answers for the remote.
	RemoteConfig string `json:"remote_config,omitempty"`
	// Making says that git has not finished making the worktree; nobody has worked in it.
	Making bool `json:"making,omitempty"`
	// Rebasing is what a rebase of ralph's own, now under way, replays onto; a crash leaves it set.
	Rebasing *Base `json:"rebasing,omitempty"`
	// Merging is the commit that the branch moves to where it is merged with Rebasing and not replayed.
	Merging string `json:"merging,omitempty"`
	// Private says that the agent works in a private repository: commits are found there, not in GitDir.
	Private bool `json:"private,omitempty"`
	// Packed are commits that a copy of the private repository has with all that they need; none: it is not copied.
	Packed []string `json:"packed,omitempty"`
}

func (r *Repo) recordPath(name string) string { return r.path("worktrees", name+recordSuffix) }

// saveRecord replaces the record: a reader sees the old one or the new one. A durable one outlives a power loss.
func (r *Repo) saveRecord(name string, rec record, durable bool) error {
	content, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return fmt.Errorf("save record of worktree %s: %w", name, err)
	}
	temp := r.path("tmp", "record-"+rand.Text())
	if err := writeNew(temp, append(content, '\n'), 0o600, durable); err != nil {
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
		return record{}, fmt.Errorf("worktree record %s: %w; if the worktree beside it is not needed, remove both", path, err)
	}
	if filepath.Dir(rec.GitDir) != filepath.Join(r.common, "worktrees") {
		return record{}, fmt.Errorf("worktree record %s belongs to another repository: %s", path, rec.GitDir)
	}
	return rec, nil
}

// decodeRecord reads a record and refuses one that would name anything unsafe.
func decodeRecord(content []byte) (record, error) {
	var rec record
	d := json.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&rec); err != nil {
		return record{}, err
	}
	if err := rec.Spec.check(); err != nil {
		return record{}, err
	}
	for _, sha := range []string{rec.Start, rec.Spec.Base.Commit} {
		if !isObjectName(sha) {
			return record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	for _, sha := range []string{rec.Lease, rec.Merging} {
		if sha != "" && !isObjectName(sha) {
			return record{}, fmt.Errorf("%q is not a commit", sha)
		}
	}
	if !filepath.IsAbs(rec.GitDir) || filepath.Clean(rec.GitDir) != rec.GitDir {
		return record{}, fmt.Errorf("%q is not a clean absolute path", rec.GitDir)
	}
	return rec, nil
}

// isObjectName reports whether s is a full name of a git object.
func isObjectName(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
