package proc

import (
	"bytes"
	"encoding/binary"
)

// parseProcArgs returns the environment in the result of the macOS sysctl kern.procargs2: the number of arguments (32
// bits), the program's path, padding of NULs, the arguments, the environment. The entries end with NUL; nil if malformed.
func parseProcArgs(b []byte) []byte {
	if len(b) < 4 {
		return nil
	}
	args := int32(binary.NativeEndian.Uint32(b))
	b = afterNUL(b[4:])
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	for ; args > 0 && len(b) > 0; args-- {
		b = afterNUL(b)
	}
	return b
}

// afterNUL returns the bytes after the first NUL.
func afterNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[i+1:]
	}
	return nil
}
