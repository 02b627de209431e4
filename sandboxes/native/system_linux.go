package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// home is the empty home inside.
const home = "/home/agent"

// systemFolders hold the host's programs. They belong to the system's packages and are the same for all users.
func systemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
}

// systemSettings are what programs need of /etc. Not among them: what may hold a secret or lead somewhere, such as
// passwd, shadow, ssh, gitconfig, npmrc, environment, krb5 and resolv.conf.
func systemSettings() []string {
	return []string{
		"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
		"gai.conf", "host.conf", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
		"locale.conf", "locale.gen", "localtime", "login.defs", "lsb-release", "magic", "mime.types", "networks", "os-release",
		"perl", "pki", "protocols", "python3", "rpc", "services", "shells", "ssl", "terminfo", "timezone", "xdg",
	}
}

// system lists what exists of the host's system, and of show.
func system(show []string) (out []shown) {
	add := func(path string, system bool) {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return // links are made anew inside
		}
		out = append(out, shown{Host: path, Inside: path, File: !info.IsDir(), system: system, common: !system})
	}
	for _, dir := range systemFolders() {
		add(dir, true)
	}
	for _, name := range systemSettings() {
		add("/etc/"+name, true)
	}
	for _, path := range show {
		if filepath.IsAbs(path) && !reserved(filepath.Clean(path)) {
			add(filepath.Clean(path), false)
		}
	}
	return out
}

// systemLinks are the host's own links in the places of system folders and settings: where they lead, by path.
func systemLinks() map[string]string {
	links := make(map[string]string)
	paths := systemFolders()
	for _, name := range systemSettings() {
		paths = append(paths, "/etc/"+name)
	}
	for _, path := range paths {
		if to, err := os.Readlink(path); err == nil {
			links[path] = to
		}
	}
	return links
}

// writtenSettings are the files of /etc that say who and where one is inside.
func writtenSettings(uid, gid int) map[string]string {
	return map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nagent:x:%d:%d:agent:%s:/bin/sh\n"+
			"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n", uid, gid, home),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", gid),
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 " + hostname + "\n",
		"hostname":      hostname + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
		"resolv.conf":   "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n",
	}
}

// hostname is the machine's name inside.
const hostname = "ralph"

// defaultPath is where every sandbox has programs.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// path is the host's PATH less what is not seen inside or may be written there, and the system's own.
func (p *plan) path(host string) string {
	var dirs []string
	for _, dir := range strings.Split(host+":"+defaultPath, ":") {
		seen := slices.ContainsFunc(p.Shown, func(s shown) bool { return !s.Write && filepath.IsAbs(dir) && within(dir, s.Inside) })
		own := slices.Contains(strings.Split(defaultPath, ":"), dir)
		if (seen || own) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// baseEnv is what every command starts from; but for places in PATH nothing of it is the host's.
func baseEnv(path string) []string {
	return []string{
		"PATH=" + path, "HOME=" + home, "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=dumb",
	}
}
