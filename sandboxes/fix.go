package sandboxes

// FixError is an error with changes of settings that avoid it. Its text names no setting: only the program that owns the
// settings knows their names.
type FixError struct {
	Err   error
	Fixes []Fix // alternatives
}

// Fix is a change of one setting.
type Fix struct {
	Setting Setting
	Value   string // the value to set, if known
}

// Setting is a setting of a sandbox.
type Setting string

const (
	SetProvider  Setting = "provider"  // choose another provider
	SetImage     Setting = "image"     // build the image; Value is the engine's name
	SetUser      Setting = "user"      // Value is UID:GID, or empty for the default
	SetCopy      Setting = "copy"      // copy files instead of mounting them; Value is the user for the copy
	SetRuntime   Setting = "runtime"   // choose a runtime that the engine has
	SetUnbounded Setting = "unbounded" // accept an engine without limits
	SetMemory    Setting = "memory"    // raise it
	SetCPUs      Setting = "cpus"      // raise it
	SetFolder    Setting = "folder"    // move the folder that the error names
)

// Fixable returns err as a *FixError with alternative fixes.
func Fixable(err error, fixes ...Fix) error { return &FixError{err, fixes} }

func (e *FixError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *FixError) Unwrap() error { return e.Err }
