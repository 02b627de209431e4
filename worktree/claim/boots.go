package claim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Two machines made from one image may have the same name and ID. So a holder that looks like a process of this machine
// only counts as one if it started in a boot that this machine has recorded. Otherwise a missing process proves nothing.

// bootsKept is the number of boots that a machine records.
const bootsKept = 20

// bootOf returns the boot part of a process's start; empty if the system does not identify boots.
func bootOf(started string) string {
	_, boot, _ := strings.Cut(started, "@")
	return boot
}

// endedStart returns the start recorded for a process that has ended: only the boot part is left.
func endedStart(boot string) string {
	if boot == "" {
		return ""
	}
	return "@" + boot
}

// isOfThisMachine reports whether the holder is or was a process of this machine, or a run that waits on it.
func (s *Store) isOfThisMachine(h Holder) bool {
	if h.Host != s.self.Host {
		return false
	}
	boot := bootOf(h.Started)
	return boot == bootOf(s.self.Started) || slices.Contains(s.knownBoots(), boot)
}

func (s *Store) bootsFile() string { return s.waitDir + "-boots" }

func (s *Store) knownBoots() []string {
	if s.waitDir == "" {
		return nil
	}
	text, _ := os.ReadFile(s.bootsFile()) // without the file, the claim has to expire
	return strings.Fields(string(text))
}

// recordBoot records the present boot.
func (s *Store) recordBoot() error {
	known, boot := s.knownBoots(), bootOf(s.self.Started)
	if s.waitDir == "" || boot == "" || slices.Contains(known, boot) {
		return nil
	}
	known = append(known, boot)
	if err := os.MkdirAll(filepath.Dir(s.waitDir), 0o700); err != nil {
		return err
	}
	return s.writeFile(s.bootsFile(), strings.Join(known[max(0, len(known)-bootsKept):], "\n")+"\n", time.Time{})
}
