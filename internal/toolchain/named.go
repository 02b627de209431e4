package toolchain

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// Named is a host that a project file names. It is not trusted: the project's authors choose it.
type Named struct{ Host, File string }

// registryHosts returns the hosts in the settings files of a folder.
func registryHosts(here fs.FS, dir string, registries []ecosystem.Registry) (out []Named) {
	for _, r := range registries {
		info, err := fs.Lstat(here, r.File)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			continue
		}
		text, err := fs.ReadFile(here, r.File)
		if err != nil {
			continue
		}
		for _, host := range hostsOf(r, string(text)) {
			if n := (Named{host, path.Join(dir, r.File)}); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// hostsOf returns the hosts in the values of the registry's keys.
func hostsOf(r ecosystem.Registry, text string) (out []string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key[strings.LastIndexByte(key, ':')+1:])
		if !ok || r.Section != "" && section != r.Section || !slices.Contains(r.Keys, key) {
			continue
		}
		hosts, _ := hostsIn(strings.TrimPrefix(strings.Trim(value, " \t\"'"), "sparse+"))
		out = append(out, slices.DeleteFunc(hosts, func(host string) bool {
			return strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(hostBytes, r) })
		})...)
	}
	return out
}

// hostBytes are the characters of host names, addresses and ports.
const hostBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:[]"
