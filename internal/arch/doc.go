// Package arch holds no code, only a test: which package may import which. The floors and the reasons are in the table
// of arch_test.go; a package that is added has to be added there.
package arch
