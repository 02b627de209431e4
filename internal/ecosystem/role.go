package ecosystem

// Role is the part that a file plays in the checks of its repository.
type Role int

// The roles, the strongest last. A file with several roles has the strongest.
const (
	// None is the role of files that checks only read, such as the code under test.
	None Role = iota
	// Test is the role of tests, their data and their helpers.
	Test
	// Build is the role of files that define how code and tests are built.
	Build
	// Environment is the role of files whose presence changes how tools behave.
	Environment
	// TestConfig is the role of configuration of test runners and other checks.
	TestConfig
	// GateScript is the role of files that a gate line names, or that tell a program of a gate line what to run.
	GateScript
)

// String returns the role in words.
func (r Role) String() string {
	return [...]string{"none", "test", "build file", "environment", "test configuration", "gate script"}[r]
}

// Group assigns a role to files.
type Group struct {
	Role Role
	// Files are patterns like lines of .gitignore: "*.mk", "tests/", "spec/**/*.rb", "/bin/".
	Files []string
	// Reason says why the files have the role: "holds Go tests".
	Reason string
	// First means that this role overrides stronger ones: vendored files and test data have no other role.
	First bool
}
