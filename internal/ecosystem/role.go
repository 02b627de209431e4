package ecosystem

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
