//go:build !linux

package disk

import "os"

// list opens a folder to list it.
func list(folder *os.Root) (*os.File, error) { return folder.Open(".") }
