package toolchain

import (
	"cmp"
	"os"
	"path/filepath"
)

// Installed is what a version manager has installed.
type Installed struct {
	Program  string // the manager's own, which the programs that it has installed are links to
	Variable string // by which they find Folder
	Folder   string
}

// Managers are the version managers that have installed something, by the environment.
func Managers(getenv func(string) string) []Installed { return known().managers(getenv) }

func (all table) managers(getenv func(string) string) (out []Installed) {
	for _, t := range all.tools() {
		m := t.Manager
		dir := cmp.Or(getenv(m.Variable), filepath.Join(getenv("HOME"), m.Folder))
		if _, err := os.Stat(dir); m.Program != "" && filepath.IsAbs(dir) && err == nil {
			out = append(out, Installed{m.Program, m.Variable, dir})
		}
	}
	return out
}
