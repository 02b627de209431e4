package e2e

import "os"

// everything reports whether every case of a matrix is tested, as `make soak` does. Elsewhere each class of cases has one.
func everything() bool { return os.Getenv("RALPH_TEST_EVERYTHING") != "" }

// tested reports whether a case of a matrix of two by two is tested: of each row and each column there is one.
func tested(row, column bool) bool { return row == column || everything() }
