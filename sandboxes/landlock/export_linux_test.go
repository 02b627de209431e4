package landlock

// For the external test package.
var (
	ScratchPrefix = scratchPrefix
)
