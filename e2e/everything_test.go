package e2e

import "os"

// everything reports whether every case of a matrix is tested, as `make soak` does. Elsewhere each class of cases has one.
func everything() bool { return os.Getenv("RALPH_TEST_EVERYTHING") != "" }
