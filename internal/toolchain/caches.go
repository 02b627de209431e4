package toolchain

import "github.com/ralph-pool/ralph/internal/ecosystem"

// Caches are folders below a home in which tools keep what they fetch and compile: what is there too much changes no result.
func Caches() []string { return known().caches() }

func (all table) caches() (folders []string) {
	for _, t := range all.tools() {
		folders = append(folders, t.Caches...)
	}
	return folders
}

// Managers are the version managers of tools.
func Managers() []ecosystem.Manager { return known().managers() }

func (all table) managers() (out []ecosystem.Manager) {
	for _, t := range all.tools() {
		if t.Manager.Program != "" {
			out = append(out, t.Manager)
		}
	}
	return out
}
