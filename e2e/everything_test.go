package e2e

import "os"

// everything reports whether all cases of a matrix are tested, as in `make soak`. Otherwise one case of each class is.
func everything() bool { return os.Getenv("RALPH_TEST_EVERYTHING") != "" }

// tested reports whether a case of a two-by-two matrix is tested: at least one of each row and each column.
func tested(row, column bool) bool { return row == column || everything() }
