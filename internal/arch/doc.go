// Package arch contains only tests that enforce the project's structure: which package may import which (the floors), which calls
// are reserved for the program, how large files and folders may be, and which words are retired. Each test has a table of its rules.
package arch
