package sandboxes

// FixError is an error that a change of the settings would avoid. Its text names no setting: only the program that has the
// settings knows what they are called.
type FixError struct {
	Err   error
	Fixes []Fix // each of them helps
}

// Fix is a change of one setting.
type Fix struct {
	Setting Setting
	Value   string // the value that helps, where it is known
}

// Setting is what a program can set of a sandbox.
type Setting string

const (
	SetProvider  Setting = "provider"  // another one
	SetImage     Setting = "image"     // build it; Value is the engine's name
	SetUser      Setting = "user"      // Value is UID:GID, or empty for the default
	SetCopy      Setting = "copy"      // copy files instead of mounting them; Value is the user for it
	SetRuntime   Setting = "runtime"   // one that the engine has
	SetUnbounded Setting = "unbounded" // accept an engine without limits
	SetMemory    Setting = "memory"    // more
	SetCPUs      Setting = "cpus"      // more
	SetPlace     Setting = "place"     // move the folder that the error names
)

// Fixable returns an error with the changes that help.
func Fixable(err error, fixes ...Fix) error { return &FixError{err, fixes} }

func (e *FixError) Error() string { return e.Err.Error() }

// Unwrap gives the error itself.
func (e *FixError) Unwrap() error { return e.Err }
