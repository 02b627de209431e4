package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/supervisor"
)

// home is the empty home inside.
const home = "/home/agent"

// system lists the host's system folders and settings, and show, as far as they exist.
func system(show []string) (out []shown) {
	add := func(path string, system bool) {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return // links are made anew inside
		}
		out = append(out, shown{Host: path, Inside: path, File: !info.IsDir(), system: system, common: !system})
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

// systemLinks are the host's own links in the places of system folders and settings: their targets, by path.
func systemLinks() map[string]string {
	links := make(map[string]string)
	for _, path := range supervisor.SystemPaths() {
		if to, err := os.Readlink(path); err == nil {
			links[path] = to
		}
	}
	return links
}

// writtenSettings are the files of /etc that describe users and the machine inside.
func writtenSettings(uid, gid int) map[string]string {
	return map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nagent:x:%d:%d:agent:%s:/bin/sh\n"+
			"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n", uid, gid, home),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", gid),
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 " + hostname + "\n",
		"hostname":      hostname + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
		"resolv.conf":   egress.ResolvConf,
	}
}

// hostname is the machine's name inside.
const hostname = "ralph"

// path is the PATH inside.
func (p *plan) path(host string) string {
	return supervisor.Path(host, func(dir string) bool {
		return slices.ContainsFunc(p.Shown, func(s shown) bool { return !s.Write && sandboxes.Within(dir, s.Inside) })
	})
}

// baseEnv is the environment of every command. Except for folders in PATH nothing of it is the host's.
func baseEnv(path string) []string {
	return []string{
		"PATH=" + path, "HOME=" + home, "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=dumb",
	}
}
