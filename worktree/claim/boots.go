package claim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Two machines may have one name and one id, such as those that were made from one image. A holder that looks like a process of this
// machine is one only if it started since a boot that this machine knows: that it is not there any more says nothing otherwise.

// bootsKept is how many boots a machine knows.
const bootsKept = 20

// bootOf is the boot in a process's start; empty: the system counts no boots.
func bootOf(started string) string {
	_, boot, _ := strings.Cut(started, "@")
	return boot
}

// since is what is left of a process's start once it has ended: the boot.
func since(boot string) string {
	if boot == "" {
		return ""
	}
	return "@" + boot
}

// ofThisMachine reports that the holder is or was a process of this machine, or is a run that waits on it.
func (s *Store) ofThisMachine(h Holder) bool {
	if h.Host != s.self.Host {
		return false
	}
	boot := bootOf(h.Started)
	return boot == bootOf(s.self.Started) || slices.Contains(s.boots(), boot)
}

func (s *Store) bootsFile() string { return s.left + "-boots" }

func (s *Store) boots() []string {
	if s.left == "" {
		return nil
	}
	text, _ := os.ReadFile(s.bootsFile()) // without it the holder's claim has to expire
	return strings.Fields(string(text))
}

// noteBoot makes the present boot known to later ones.
func (s *Store) noteBoot() error {
	known, boot := s.boots(), bootOf(s.self.Started)
	if s.left == "" || boot == "" || slices.Contains(known, boot) {
		return nil
	}
	known = append(known, boot)
	if err := os.MkdirAll(filepath.Dir(s.left), 0o700); err != nil {
		return err
	}
	return s.put(s.bootsFile(), strings.Join(known[max(0, len(known)-bootsKept):], "\n")+"\n", time.Time{})
}
