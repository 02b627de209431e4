package run

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
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

// Owner is the owner of a claim, unique to the call, for a run of the host.
func Owner(host string) string { return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()) }

// Place identifies this state folder among those of the host.
func (r *Runner) Place() string {
	sum := sha256.Sum256([]byte(r.c.Repo.StateDir()))
	return hex.EncodeToString(sum[:8])
}

// Dead reports that no process works on the run: it was deferred, or its process on this host has died.
func (r *Runner) Dead(rec journal.Record) bool {
	return rec.PID == 0 || rec.Host == r.host && !proc.Alive(rec.PID, rec.Process)
}
