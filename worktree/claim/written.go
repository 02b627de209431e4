package claim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Whoever may push to the remote can leave a claim there that names this host, a process that is gone, and any run, also one of
// another repository that is at work. So a run that this host knows counts as dead only where the claim is a commit that it has
// written for it. Of one that it does not know, the state is lost: only the claim says what it has left running.

func (s *Store) writtenDir() string { return s.left + "-written" }

func (s *Store) writtenFile(run string) string { return filepath.Join(s.writtenDir(), git.Digest(run)) }

// writtenTime is how long a run that did not come to its end is known.
const writtenTime = 90 * 24 * time.Hour

// noteWritten makes a run known, and which commits may be its claim from now on. Without any it is forgotten. Where that fails, it
// is as if the state was lost.
func (s *Store) noteWritten(run string, commits ...string) {
	if s.left == "" {
		return
	}
	if len(commits) == 0 {
		_ = os.Remove(s.writtenFile(run)) // as said
	} else if os.MkdirAll(s.writtenDir(), 0o700) == nil {
		_ = os.WriteFile(s.writtenFile(run), []byte(run+"\n"+strings.Join(commits, "\n")), 0o600) // as said
	}
}

// forged reports that the commit, a claim of a run of this host, is not one that this host has written. To end a run ends those, too,
// whose ids begin with it and a "-".
func (s *Store) forged(run, commit string) bool {
	if s.left == "" {
		return false
	}
	files, _ := os.ReadDir(s.writtenDir())
	for _, file := range files {
		text, _ := os.ReadFile(filepath.Join(s.writtenDir(), file.Name())) // it may have come to its end
		known, commits, _ := strings.Cut(string(text), "\n")
		if known == run && !slices.Contains(strings.Fields(commits), commit) || strings.HasPrefix(known, run+"-") {
			return true
		}
	}
	return false
}

// forgetWritten forgets what is too old.
func (s *Store) forgetWritten() {
	if s.left == "" {
		return
	}
	files, _ := os.ReadDir(s.writtenDir())
	for _, file := range files {
		if info, err := file.Info(); err == nil && s.now().After(info.ModTime().Add(writtenTime)) {
			_ = os.Remove(filepath.Join(s.writtenDir(), file.Name())) // the next one tries again
		}
	}
}
