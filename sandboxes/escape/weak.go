package escape

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// weakness is an attack that the provider is documented not to prevent.
type weakness struct {
	text string // part of the suite's report
	seen bool
}

// Errorf reports an error, unless the text matches a documented weakness.
func (s *Suite) Errorf(format string, args ...any) {
	s.Helper()
	text := fmt.Sprintf(format, args...)
	for _, w := range s.weaknesses {
		if strings.Contains(text, w.text) {
			w.seen = true
			s.Logf("known: %s", text)
			return
		}
	}
	s.T.Errorf("%s", text)
}

// checkWeaknesses reports an error for a documented weakness that did not show: the documentation is wrong then.
func (s *Suite) checkWeaknesses() {
	s.Helper()
	for _, w := range s.weaknesses {
		if !w.seen {
			s.T.Errorf("the provider stops %q, although it is in the list of its weaknesses", w.text)
		}
	}
}

// gitFile is part of the suite's report of a changed .git file.
const gitFile = "worktree/.git is now"

// Documented returns the attacks that providers of this kind are documented not to prevent, for [Options.Weak].
func Documented(kind sandboxes.Isolation) map[string][]string {
	switch kind {
	case sandboxes.AccessRules:
		return accessRuleWeaknesses()
	case sandboxes.Container:
		return map[string][]string{
			// The kernel counts per user, across containers and host.
			"exhaust/watchers of files": {"inotify instances", "inotify watches"},
			// These are names of the kernel's functions, without their addresses.
			"privileges/settings of the machine": {"read /proc/kallsyms"},
		}
	}
	return nil
}

// addRootWeaknesses adds the weaknesses of containers whose user is root by the user's choice.
func addRootWeaknesses(weak map[string][]string) {
	for name, text := range map[string]string{
		"privileges/having or gaining any":   "it runs as root",
		"privileges/settings of the machine": "create a file in /dev, as root",
	} {
		weak[name] = append(weak[name], text)
	}
}

// accessRuleWeaknesses returns the attacks that a provider with only access rules does not prevent.
func accessRuleWeaknesses() map[string][]string {
	weak := map[string][]string{
		// Without mounts nothing can cover a file, and entries of a writable folder can be replaced. Close restores the
		// file.
		"files/the worktree's .git file": {
			"the .git file was removed", "the .git file was replaced by a folder", "the .git file was replaced",
			"the .git file was linked over", "the .git file was changed", ".git inside is now", gitFile,
		},
		// The sandbox has the host's network and process list.
		"exhaust/processes": {"count "},
		// The kernel counts per user, and the sandbox has the host's user.
		"exhaust/watchers of files":                                      {"inotify instances", "inotify watches"},
		"secrets/processes of the host, their environment and arguments": {" cmdline", " comm"},
		"privileges/having or gaining any":                               {gitFile},
		"privileges/settings of the machine":                             {gitFile},
		// The rules check neither permissions nor times nor watches, and they allow a port for all addresses.
		"files/what is shown read-only":           {"chmod 777", "touch -d"},
		"files/metadata of the host's files":      {"chmod", "chown", "set the times", "watch"},
		"network/other hosts at the proxy's port": {"connect to"},
	}
	for _, name := range []string{
		"privileges/system calls into the kernel's depths", "secrets/files of the host",
		"secrets/a file of the host by its path", "exhaust/scratch space",
		"files/what is shown read-only", "files/links, pipes and devices in the worktree",
		"helper/signals to the first process",
	} {
		weak[name] = append(weak[name], gitFile)
	}
	also := func(name, text string) { weak[name] = append(weak[name], text) }
	for _, file := range []string{"/proc/keys", "/proc/timer_list", "/proc/kallsyms"} {
		if readable(file) {
			also("privileges/settings of the machine", "read "+file)
		}
	}
	if interfaces, err := net.Interfaces(); err == nil && slices.ContainsFunc(interfaces, func(i net.Interface) bool {
		return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0
	}) {
		also("network/anything without a proxy", "the network has")
	}
	also("privileges/having or gaining any", "CapBnd")
	return weak
}

// readable reports whether this process, and so one in a sandbox, can read the file and finds content.
func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	_, err = f.Read(make([]byte, 1))
	return err == nil
}
