package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// home is the home inside.
const home = "/home/agent"

// system returns the existing system folders and settings of the host, and those of show.
func system(show []string) (out []shown) {
	add := func(path string, system bool) {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return // links are recreated inside
		}
		out = append(out, shown{Host: path, Inside: path, File: !info.IsDir(), system: system, publicAccess: !system})
	}
	for _, path := range supervisor.SystemPaths() {
		add(path, true)
	}
	for _, path := range show {
		if filepath.IsAbs(path) && !supervisor.Reserved(filepath.Clean(path)) {
			add(filepath.Clean(path), false)
		}
	}
	return out
}

// systemLinks returns the host's links among the system folders and settings: targets by path.
func systemLinks() map[string]string {
	links := make(map[string]string)
	for _, path := range supervisor.SystemPaths() {
		if to, err := os.Readlink(path); err == nil {
			links[path] = to
		}
	}
	return links
}

// writtenSettings returns the files of /etc about users and the machine inside.
func writtenSettings(uid, gid int) map[string]string {
	return map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nagent:x:%d:%d:agent:%s:/bin/sh\n"+
			"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n", uid, gid, home),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", gid),
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 " + hostname + "\n",
		"hostname":      hostname + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
		"resolv.conf":   forward.ResolvConf,
	}
}

// hostname is the host name inside.
const hostname = "ralph"

// path returns the PATH inside.
func (p *plan) path(host string) string {
	return supervisor.Path(host, func(dir string) bool {
		return slices.ContainsFunc(p.Shown, func(s shown) bool { return !s.Write && sandboxes.IsInside(dir, s.Inside) })
	})
}

// baseEnv returns the environment of every command. Only folders in PATH come from the host.
func baseEnv(path string) []string {
	return []string{
		"PATH=" + path, "HOME=" + home, "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=dumb",
	}
}
