package toolchain

// Caches returns folders, relative to the home, where tools keep what they fetch and compile. Extra entries in them change
// no result.
func Caches() []string { return known().caches() }

func (all table) caches() (folders []string) {
	for _, t := range all.tools() {
		folders = append(folders, t.Caches...)
	}
	return folders
}
