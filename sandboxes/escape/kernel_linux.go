package escape

import "slices"

// kernelAttacks returns the attacks that need this host's kernel.
func kernelAttacks() []Attack {
	list := slices.Concat(privilegeAttacks(), secretAttacks(), networkAttacks(), serviceAttacks(), exhaustAttacks(), fileAttacks(), helperAttacks())
	for i := range list {
		list[i].Kernel = true
	}
	return list
}
