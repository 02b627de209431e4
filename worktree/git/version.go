package git

import (
	"strconv"
	"strings"
)

// OlderVersion compares major and minor numbers. A version that cannot be read is not older.
func OlderVersion(have, need string) bool {
	h, n := strings.SplitN(have, ".", 3), strings.SplitN(need, ".", 3)
	for i := range min(len(h), len(n), 2) {
		a, errA := strconv.Atoi(h[i])
		b, errB := strconv.Atoi(n[i])
		if errA != nil || errB != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}
