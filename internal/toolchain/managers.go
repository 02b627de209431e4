package toolchain

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// Managers returns the version managers that have installed something, according to the environment. Folder is the actual folder.
func Managers(getenv func(string) string) []ecosystem.Manager { return known().managers(getenv) }

func (all table) managers(getenv func(string) string) (out []ecosystem.Manager) {
	for _, t := range all.tools() {
		m := t.Manager
		dir := cmp.Or(getenv(m.Variable), filepath.Join(getenv("HOME"), m.Folder))
		if _, err := os.Stat(dir); m.Program != "" && filepath.IsAbs(dir) && err == nil {
			m.Folder = dir
			out = append(out, m)
		}
	}
	return out
}
