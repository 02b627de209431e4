package toolchain

// Caches are folders below a home in which tools keep what they fetch and compile: what is there too much changes no result.
func Caches() []string { return known().caches() }

func (all table) caches() (folders []string) {
	for _, t := range all.tools() {
		folders = append(folders, t.Caches...)
	}
	return folders
}
