package landlock_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escapetest"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
)

// TestNothingElseEscapes makes every attack of the suite. Those that the provider is documented not to stop must succeed,
// and no others.
func TestNothingElseEscapes(t *testing.T) {
	t.Parallel()
	escapetest.Run(t, func(*testing.T) sandboxes.Provider { return landlock.New(landlock.Config{}) },
		escapetest.Options{InPlace: true, Looking: true, Weak: weak()})
}

// gitFile is what the suite says of a worktree's .git file that is not the user's own any more.
const gitFile = "worktree/.git is now"

// weak are the attacks of the suite that the rules cannot stop, each for a reason of Weaknesses.
func weak() map[string][]string {
	weak := map[string][]string{
		// Nothing can be put over a file, nor kept in a folder that may be written. Close puts the file back.
		"files/the worktree's .git file": {
			"the .git file was removed", "the .git file was replaced by a folder", "the .git file was replaced",
			"the .git file was linked over", "the .git file was changed", ".git inside is now", gitFile,
		},
		// The host's network and process list are the sandbox's.
		"exhaust/processes": {"count "},
		// What the kernel counts is the user's, and the sandbox's user is nobody else.
		"exhaust/watchers of files":                                      {"inotify instances", "inotify watches"},
		"secrets/processes of the host, their environment and arguments": {" cmdline"},
		"privileges/there are none and none can be had":                  {gitFile},
		"privileges/settings of the machine":                             {gitFile},
	}
	for _, name := range []string{
		"privileges/system calls into the kernel's depths", "secrets/files of the host", "exhaust/scratch space",
		"files/what is shown read-only", "files/links, pipes and devices in the worktree", "helper/signals to the first process",
	} {
		weak[name] = append(weak[name], gitFile)
	}
	also := func(name, text string) { weak[name] = append(weak[name], text) }
	for _, file := range []string{"/proc/keys", "/proc/timer_list", "/proc/kallsyms"} {
		if readable(file) {
			also("privileges/settings of the machine", "read "+file)
		}
	}
	if all, err := filepath.Glob("/proc/[0-9]*"); err == nil && len(all) > 20 { // which is many, to the suite
		also("secrets/processes of the host, their environment and arguments", "BREACH there are ")
	}
	if interfaces, err := net.Interfaces(); err == nil && slices.ContainsFunc(interfaces, func(i net.Interface) bool {
		return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0
	}) {
		also("network/there is none", "the network has")
	}
	also("privileges/there are none and none can be had", "CapBnd")
	return weak
}

// readable reports whether there is something to read, for this process as for one in a sandbox.
func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	_, err = f.Read(make([]byte, 1))
	return err == nil
}
