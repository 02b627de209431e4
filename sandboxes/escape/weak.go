package escape

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// weakness is an attack that the provider is known not to stop.
type weakness struct {
	text string // part of the suite's report of it
	seen bool
}

// Errorf fails the test, unless the text reports a known weakness.
func (s *Suite) Errorf(format string, args ...any) {
	s.Helper()
	text := fmt.Sprintf(format, args...)
	for _, w := range s.weak {
		if strings.Contains(text, w.text) {
			w.seen = true
			s.Logf("known: %s", text)
			return
		}
	}
	s.T.Errorf("%s", text)
}

// weakStill fails the test if a weakness was not seen: then the list of them is wrong.
func (s *Suite) weakStill() {
	s.Helper()
	for _, w := range s.weak {
		if !w.seen {
			s.T.Errorf("the provider stops %q, although it is in the list of its weaknesses", w.text)
		}
	}
}

// gitFile is what the suite says of a worktree's .git file that is not the user's own any more.
const gitFile = "worktree/.git is now"

// Documented are the attacks that providers of this kind do not stop, by their documentation, for [Options.Weak].
func Documented(kind sandboxes.Isolation) map[string][]string {
	switch kind {
	case sandboxes.AccessRules:
		return rules()
	case sandboxes.Container:
		return map[string][]string{
			// What the kernel counts is the user's, of containers and host alike.
			"exhaust/watchers of files": {"inotify instances", "inotify watches"},
			// The names of the kernel's functions, without their addresses.
			"privileges/settings of the machine": {"read /proc/kallsyms"},
		}
	}
	return nil
}

// asRoot adds what is documented of containers whose user the user has chosen to be root.
func asRoot(weak map[string][]string) {
	for name, text := range map[string]string{
		"privileges/having or gaining any":   "it runs as root",
		"privileges/settings of the machine": "create a file in /dev, as root",
	} {
		weak[name] = append(weak[name], text)
	}
}

// rules are the attacks that a provider with nothing but access rules does not stop.
func rules() map[string][]string {
	weak := map[string][]string{
		// Without mounts nothing can cover a file, and a folder that can be written keeps none. Close restores the file.
		"files/the worktree's .git file": {
			"the .git file was removed", "the .git file was replaced by a folder", "the .git file was replaced",
			"the .git file was linked over", "the .git file was changed", ".git inside is now", gitFile,
		},
		// The host's network and process list are the sandbox's.
		"exhaust/processes": {"count "},
		// What the kernel counts is the user's, and the sandbox's user is nobody else.
		"exhaust/watchers of files":                                      {"inotify instances", "inotify watches"},
		"secrets/processes of the host, their environment and arguments": {" cmdline", " comm"},
		"privileges/having or gaining any":                               {gitFile},
		"privileges/settings of the machine":                             {gitFile},
		// The rules judge neither permissions nor times nor watching, and a port of all addresses.
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
