package ecosystem

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/ecosystem/script"
)

// Role is what a file is to the checks of its repository.
type Role int

// The roles, the strongest last: a file that has several has the strongest.
const (
	// None is a file that checks only look at, such as the code under test.
	None Role = iota
	// Test is a test, its data or its helper.
	Test
	// Build is a file that says how code and tests are built.
	Build
	// Environment is a file that changes how tools behave by being there.
	Environment
	// TestConfig is configuration of a test runner or of another check.
	TestConfig
	// GateScript is a file that a gate line names, or that tells a program of a gate line what to run.
	GateScript
)

// String is the role in words.
func (r Role) String() string {
	return [...]string{"none", "test", "build file", "environment", "test configuration", "gate script"}[r]
}

// Group is files of one role.
type Group struct {
	Role Role
	// Files are patterns like lines of .gitignore: "*.mk", "tests/", "spec/**/*.rb", "/bin/".
	Files []string
	// Reason says why they have the role: "holds Go tests".
	Reason string
	// First says that the role goes before stronger ones: what is test data or vendored is nothing else.
	First bool
}

// RoleOf returns what the file (a slash-separated path from the root) is to the checks, and why: in words, empty for
// None. Gate are the lines of the gate. What scripts call in turn is not followed; see [Follow].
func RoleOf(file string, gate []string) (Role, string) { return roles(gate)(file) }

// roles returns RoleOf for one gate.
func roles(gate []string) func(file string) (Role, string) {
	all := All()
	files := programs().Files(gate)
	return func(file string) (Role, string) {
		file = path.Clean(file)
		if n, ok := files[file]; ok {
			return GateScript, n.Why
		}
		for pattern, n := range files {
			if n.Run && script.IsPattern(pattern) && doublestar.MatchUnvalidated(pattern, file) {
				return GateScript, n.Why
			}
		}
		var best Group
		for _, e := range all {
			for _, g := range e.Groups {
				if (g.First || g.Role > best.Role) && match.Any(g.Files, file) {
					if g.First {
						return g.Role, g.Reason
					}
					best = g
				}
			}
		}
		if module, ok := shadowed(file, all); ok && best.Role <= Environment {
			return Environment, "takes the place of the module " + module
		}
		return best.Role, best.Reason
	}
}

// shadowed returns the module of a library whose place the file takes.
func shadowed(file string, all []Ecosystem) (module string, ok bool) {
	for _, e := range all {
		if e.Shadows.Ending == "" {
			continue
		}
		folder, base := path.Split(file)
		name, isModule := strings.CutSuffix(base, e.Shadows.Ending)
		if isModule && slices.Contains(e.Shadows.Test, name) {
			return name, true
		}
		folders := strings.Split(strings.TrimSuffix(folder, "/"), "/")
		for i, f := range folders { // a package: pytest/anything
			if i < 2 && slices.Contains(e.Shadows.Test, f) && isModule {
				return f, true
			}
		}
		inRoot := folder == "" || len(folders) == 1 && slices.Contains(e.Shadows.Roots, folders[0])
		if isModule && inRoot && slices.Contains(e.Shadows.Standard, name) {
			return name, true
		}
		// The package json/ in the root; its other files count only with its __init__.
		if isModule && name == "__init__" && len(folders) == 1 && slices.Contains(e.Shadows.Standard, folders[0]) {
			return folders[0], true
		}
	}
	return "", false
}
