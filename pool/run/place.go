package run

import (
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Folder is the folder of a run.
func (r *Runner) Folder(key, id string) string {
	return filepath.Join(r.c.Repo.StateDir(), "runs", key, id)
}

// Host is the name of this machine in records.
func (r *Runner) Host() string { return r.host }

// Dead reports that no process works on the run: it was deferred, or its process on this host has died.
func (r *Runner) Dead(rec journal.Record) bool {
	return rec.PID == 0 || rec.Host == r.host && !proc.Alive(rec.PID, rec.Process)
}
