package landlock

// For tests outside the package.
var (
	ScratchPrefix = scratchPrefix
)
