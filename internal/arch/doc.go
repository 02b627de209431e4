// Package arch holds no code, only tests that keep the shape of the project: which package may import which (the floors),
// which uses are reserved for the program, how large files and folders may be, and which words are retired. Each test has a
// table that says so.
package arch
